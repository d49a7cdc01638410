"""Following a job's log live (J20, traps 17 and 24)."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest

from headway.client.event_stream import EventStreamDecoder, ServerSentEvent
from headway.core.states import Outcome
from headway.store.attempts import RetryLater

TRAIN = {"model": "llama"}
FAR_S = 60.0


class Follower:
    """One open stream, read event by event."""

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        self._chunks = lines
        self._decoder = EventStreamDecoder()
        self._waiting: list[ServerSentEvent] = []
        self.raw = b""

    async def next(self) -> ServerSentEvent:
        async with asyncio.timeout(FAR_S):
            while not self._waiting:
                chunk = await anext(self._chunks)
                self.raw += chunk
                self._waiting.extend(self._decoder.feed(chunk))
        return self._waiting.pop(0)

    async def next_text(self) -> tuple[str, str | None]:
        """The next piece of the log, and its id."""
        while (event := await self.next()).event != "log":
            pass
        return json.loads(event.data)["text"], event.id

    async def rest(self) -> list[ServerSentEvent]:
        """Everything up to the end event, without it."""
        events = []
        while (event := await self.next()).event != "end":
            events.append(event)
        return events


@asynccontextmanager
async def following(
    api: Any, job_id: str, query: str = "", **headers: str
) -> AsyncIterator[Follower]:
    path = f"/v1/jobs/{job_id}/logs/stream{query}"
    async with api.http.stream("GET", path, headers=headers, timeout=FAR_S) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        yield Follower(response.aiter_raw())


def texts(events: list[ServerSentEvent]) -> str:
    return "".join(json.loads(event.data)["text"] for event in events if event.event == "log")


async def test_a_line_comes_when_it_is_written_and_not_with_a_poll(api: Any) -> None:
    """Trap 17: this server's backup poll is 1 s, so ten lines by polling would take ten."""
    job_id = await api.submit(input=TRAIN)
    await api.claim()
    async with following(api, job_id) as follower, asyncio.timeout(9):
        for number in range(10):
            api.write_log(job_id, 1, f"line {number}\n".encode())
            assert (await follower.next_text())[0] == f"line {number}\n"


async def test_a_lost_ring_costs_latency_and_no_line(api: Any) -> None:
    job_id = await api.submit(input=TRAIN)
    await api.claim()
    async with following(api, job_id) as follower:
        api.write_log(job_id, 1, b"one\n")
        await follower.next_text()
        api.write_log(job_id, 1, b"two\n", ring=False)
        assert await follower.next_text() == ("two\n", "1:8")


async def test_the_stream_tells_of_the_job_and_ends_with_it(api: Any) -> None:
    job_id = await api.submit(input=TRAIN)
    async with following(api, job_id) as follower:
        assert json.loads((await follower.next()).data)["state"] == "PENDING"
        claimed = await api.claim()
        assert json.loads((await follower.next()).data)["state"] == "RUNNING"
        api.write_log(job_id, 1, b"last words", ring=False)
        await api.finish(claimed)
        events = await follower.rest()
    assert texts(events) == "last words", "what was written before the end comes before the end"
    states = [json.loads(event.data)["state"] for event in events if event.event == "job"]
    assert states == ["SUCCEEDED"]


async def test_every_attempts_log_follows_in_order(api: Any) -> None:
    """J3: a retry appends a new attempt's log, the old one stays."""
    job_id = await api.submit(input=TRAIN)
    async with following(api, job_id) as follower:
        first = await api.claim()
        api.write_log(job_id, 1, b"first\n")
        later = RetryLater(outcome=Outcome.FAILED, delay_s=0, reason="again")
        await api.store.end_attempt(first.claim, later)
        api.ring(job_id)
        second = await api.claim()
        api.write_log(job_id, 2, b"second\n")
        await api.finish(second)
        events = await follower.rest()
    logs = [(json.loads(e.data)["attempt"], e.id) for e in events if e.event == "log"]
    assert texts(events) == "first\nsecond\n"
    assert logs == [(1, "1:6"), (2, "2:7")]


async def test_a_stream_is_resumed_exactly_after_any_event(api: Any) -> None:
    job_id = await api.submit(input=TRAIN)
    claimed = await api.claim()
    words = ["naïve ", "✓✓", "日本", "\x1b[31mred\x1b[0m\n", "end"]
    async with following(api, job_id) as follower:
        ids = []
        for word in words:
            api.write_log(job_id, 1, word.encode())
            ids.append((await follower.next_text())[1])
    await api.finish(claimed)
    for seen, event_id in enumerate(ids, 1):
        async with following(api, job_id, **{"last-event-id": event_id}) as follower:
            assert texts(await follower.rest()) == "".join(words[seen:])


async def test_a_character_that_is_half_written_waits_for_its_other_half(api: Any) -> None:
    job_id = await api.submit(input=TRAIN)
    claimed = await api.claim()
    tick = "✓".encode()
    async with following(api, job_id) as follower:
        api.write_log(job_id, 1, b"ok " + tick[:2])
        assert await follower.next_text() == ("ok ", "1:3")
        api.write_log(job_id, 1, tick[2:])
        assert await follower.next_text() == ("✓", "1:6")
        api.write_log(job_id, 1, tick[:1])
        await api.finish(claimed)
        assert texts(await follower.rest()) == "\N{REPLACEMENT CHARACTER}", "and not for ever"


async def test_a_new_server_goes_on_where_the_old_one_stopped(start_api: Any) -> None:
    """J20: resumed exactly once across a restart of the server."""
    async with start_api() as api:
        job_id = await api.submit(input=TRAIN)
        claimed = await api.claim()
        api.write_log(job_id, 1, b"before\n")
        async with following(api, job_id) as follower:
            _, position = await follower.next_text()
    async with start_api() as api:
        api.write_log(job_id, 1, b"after\n")
        await api.finish(claimed)
        async with following(api, job_id, **{"last-event-id": position}) as follower:
            assert texts(await follower.rest()) == "after\n"


async def test_tail_and_since_choose_where_it_begins(api: Any) -> None:
    job_id = await api.submit(input=TRAIN)
    claimed = await api.claim()
    api.write_log(job_id, 1, b"".join(b"line %d\n" % n for n in range(1000)))
    await api.finish(claimed)
    async with following(api, job_id, "?tail=2") as follower:
        assert texts(await follower.rest()) == "line 998\nline 999\n"
    async with following(api, job_id, "?since=1:8886") as follower:
        assert texts(await follower.rest()) == "999\n"


async def test_a_quiet_stream_beats(api: Any) -> None:
    """This server beats every 0.2 s; without it a proxy would cut the stream."""
    job_id = await api.submit(input=TRAIN)
    path = f"/v1/jobs/{job_id}/logs/stream"
    beats = b""
    async with api.http.stream("GET", path, timeout=FAR_S) as response, asyncio.timeout(FAR_S):
        async for chunk in response.aiter_raw():
            beats += chunk
            if beats.count(b": alive\n\n") == 3:
                break


async def test_two_hundred_followers_of_one_job_all_get_every_line(api: Any) -> None:
    """J20, trap 24: a follower is a task, not a thread and not a worker."""
    job_id = await api.submit(input=TRAIN)
    claimed = await api.claim()
    ready = asyncio.Semaphore(0)

    async def follow(http: httpx.AsyncClient) -> str:
        async with following(replace(api, http=http), job_id) as follower:
            ready.release()
            return texts(await follower.rest())

    limits = httpx.Limits(max_connections=None)
    threads = threading.active_count()
    async with httpx.AsyncClient(base_url=api.url, limits=limits, timeout=60, verify=False) as http:
        followers = [asyncio.create_task(follow(http)) for _ in range(200)]
        for _ in followers:
            await ready.acquire()
        assert threading.active_count() <= threads + 2
        for number in range(20):
            api.write_log(job_id, 1, b"line %d\n" % number)
        answer = await api.http.get("/healthz")
        assert answer.status_code == 200
        await api.finish(claimed)
        seen = await asyncio.gather(*followers)
    assert set(seen) == {"".join(f"line {n}\n" for n in range(20))}


async def test_followers_that_hang_up_leave_nothing_behind(api: Any) -> None:
    job_id = await api.submit(input=TRAIN)
    await api.claim()
    for _ in range(5):
        async with following(api, job_id) as follower:
            await follower.next()
    async with asyncio.timeout(FAR_S):
        while api.live.watched:  # noqa: ASYNC110 -- nothing announces it
            await asyncio.sleep(0.01)
    assert (await api.http.get("/healthz")).status_code == 200


async def test_a_stopping_server_ends_its_streams(api: Any) -> None:
    """Trap 24: a restart must not wait for followers."""
    job_id = await api.submit(input=TRAIN)
    async with following(api, job_id) as follower:
        await follower.next()
        api.live.stop()
        with pytest.raises(StopAsyncIteration):
            await follower.next()


async def test_a_position_that_is_none_is_refused(api: Any) -> None:
    job_id = await api.submit(input=TRAIN)
    for position in ("x", "1", "1:-1", "1:", "99999999:1", "1:1:1"):
        path = f"/v1/jobs/{job_id}/logs/stream"
        answer = await api.http.get(path, headers={"last-event-id": position})
        assert answer.status_code == 422, position
