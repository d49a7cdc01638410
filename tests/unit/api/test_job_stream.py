"""J20, trap 17: the stream of all jobs' changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from headway.api.job_feed import RING, JobFeed
from headway.client.event_stream import EventStreamDecoder

WAIT_S = 20.0
TRAIN = {"model": "m"}


@asynccontextmanager
async def following(api: Any, position: str = "", last: str = "") -> AsyncIterator[Any]:
    headers = {"last-event-id": last} if last else {}
    parameters = {"since": position} if position else {}
    async with api.http.stream(
        "GET", "/v1/jobs/stream", params=parameters, headers=headers, timeout=WAIT_S
    ) as answer:
        assert answer.status_code == 200
        yield _Events(answer)


class _Events:
    def __init__(self, answer: httpx.Response) -> None:
        self._pieces = answer.aiter_bytes()
        self._decoder = EventStreamDecoder()
        self._ready: list[Any] = []

    async def next(self) -> Any:
        async with asyncio.timeout(WAIT_S):
            while not self._ready:
                self._ready += self._decoder.feed(await anext(self._pieces))
        return self._ready.pop(0)


async def test_a_new_job_and_each_of_its_states_is_told(api: Any) -> None:
    async with following(api) as events:
        assert (await events.next()).event == "reset"
        job_id = await api.submit(input=TRAIN)
        told = await events.next()
        assert (told.event, job_id in told.data) == ("job", True)
        claimed = await api.claim()
        assert '"RUNNING"' in (await events.next()).data
        await api.finish(claimed)
        assert '"SUCCEEDED"' in (await events.next()).data


async def test_a_reader_that_comes_back_gets_what_it_missed_and_nothing_twice(api: Any) -> None:
    async with following(api) as other, following(api) as events:
        await other.next()
        position = (await events.next()).id
        first = await api.submit(input=TRAIN)
        assert first in (await other.next()).data
        async with following(api, last=position) as again:
            told = await again.next()
            assert first in told.data
            second = await api.submit(input=TRAIN)
            assert second in (await again.next()).data


async def test_a_position_of_another_life_of_the_server_is_reset(api: Any) -> None:
    async with following(api, position="00ff00ff:7") as events:
        assert (await events.next()).event == "reset"


async def test_a_change_whose_ring_was_lost_is_told_late(api: Any) -> None:
    """Doorbells may be lost: that costs latency only."""
    job_id = await api.submit(input=TRAIN)
    async with following(api) as events:
        await events.next()
        await api.store.claim("worker-1", {"long": 1, "short": 1}, 60.0)
        told = await events.next()
        assert (job_id in told.data, '"RUNNING"' in told.data) == (True, True)


async def test_a_reader_that_is_too_slow_is_told_to_look_anew(api: Any) -> None:
    feed = JobFeed(api.store, api.doorbell, 1.0)
    job_id = await api.submit(input=TRAIN)
    async with feed.follow():
        position = feed.position
        row = await api.store.find(job_id)
        for _ in range(RING + 1):
            feed._add(row)
        assert feed.since(position) is None
        assert feed.since(feed.position) == []


async def test_thousands_of_rings_at_once_become_one_reset(api: Any) -> None:
    async with following(api) as events:
        await events.next()
        api.doorbell.ring(*(f"job:{number:026}" for number in range(2_000)))
        assert (await events.next()).event == "reset"
