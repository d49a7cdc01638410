"""Preconditions, awaited outside the lanes (J9, trap 11): real store, real HTTP server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from headway.core.clock import SystemClock
from headway.core.errors import ConfigError
from headway.core.states import JobState, Outcome, WaitReason
from headway.dispatch.doorbell import WORK
from headway.dispatch.loop import Loop
from headway.dispatch.named_lease import NamedLease
from headway.dispatch.owner import owner_of_this_process
from headway.dispatch.preconditions import HealthClient, Surroundings, check_precondition
from headway.dispatch.unix_doorbell import UnixDoorbell
from headway.dispatch.waiting_room import WaitingRoom
from headway.jobs.precondition import Precondition as OwnPrecondition
from headway.jobs.registry import Registry
from headway.store.attempts import Finish
from headway.store.jobs import Precondition, StoredResult
from headway.store.sqlite.store import SqliteStore
from headway.store.submissions import NewJob

LOOKS: dict[str, int] = {}


async def third_look(name: str) -> str | None:
    LOOKS[name] = LOOKS.get(name, 0) + 1
    return None if LOOKS[name] >= 3 else f"look {LOOKS[name]}"


async def broken() -> str | None:
    raise ValueError("the sensor is broken")


async def never() -> str | None:
    return "never"


@pytest.fixture
def registry() -> Registry:
    registry = Registry()
    for check in (third_look, broken, never):
        registry.add_precondition(OwnPrecondition(check.__name__, check, interval_s=0.02))
    return registry


@pytest.fixture
async def room(
    store: SqliteStore, doorbell: UnixDoorbell, registry: Registry
) -> AsyncIterator[WaitingRoom]:
    """A room that looks, as in a worker."""
    health = HealthClient()
    lease = NamedLease(store, "preconditions", str(owner_of_this_process("worker")), 5.0)
    room = WaitingRoom(
        Surroundings(store, SystemClock(), health, lambda: registry), doorbell, lease
    )
    loop = Loop("preconditions", room.step, 0.2, doorbell.listen(WORK))
    running = asyncio.create_task(loop.run())
    yield room
    loop.stop()
    await running
    room.close()
    await health.close()


def job(*preconditions: Precondition) -> NewJob:
    return NewJob(operation="op", lane="long", input_json="{}", preconditions=preconditions)


def condition(name: str, arguments_json: str = "{}", **options: Any) -> Precondition:
    return Precondition(name=name, arguments_json=arguments_json, **options)


def is_queued(row: Any) -> bool:
    return bool(row.wait_reason is WaitReason.QUEUED)


async def test_an_authors_condition_is_looked_at_until_it_is_met(room: Any, jobs: Any) -> None:
    (job_id,) = await jobs.submit(job(condition("third_look", '{"name": "a"}')))
    await jobs.until(job_id, is_queued)
    assert LOOKS["a"] == 3


async def test_an_error_fails_the_job_with_its_text(room: Any, jobs: Any) -> None:
    (job_id,) = await jobs.submit(job(condition("broken")))
    ended = await jobs.ended(job_id)
    assert (ended.state, ended.attempt) == (JobState.FAILED, 0)
    assert (ended.error.type, ended.error.message) == ("ValueError", "the sensor is broken")


async def test_a_condition_that_vanished_from_the_code_fails_the_job(room: Any, jobs: Any) -> None:
    (job_id,) = await jobs.submit(job(condition("gone")))
    assert "there is no precondition 'gone'" in (await jobs.ended(job_id)).error.message


async def test_a_limit_fails_the_job_as_timed_out(room: Any, jobs: Any) -> None:
    (job_id,) = await jobs.submit(job(condition("never", timeout_s=0.2)))
    ended = await jobs.ended(job_id)
    assert ended.outcome is Outcome.TIMED_OUT
    assert "never was not met within 0.2 s" in ended.error.message


async def test_the_reason_is_visible_and_a_cancel_ends_the_wait(
    room: Any, jobs: Any, until: Any
) -> None:
    (job_id,) = await jobs.submit(job(condition("never")))
    waiting = await jobs.until(job_id, lambda row: row.wait_detail == "never")
    assert waiting.wait_reason is WaitReason.PRECONDITION
    await jobs.store.request_cancel(job_id, "ann")
    assert (await jobs.get(job_id)).state is JobState.CANCELLED
    jobs.doorbell.ring(WORK)
    await until(lambda: not room._waits)


async def test_another_jobs_end_is_waited_for(room: Any, jobs: Any) -> None:
    (first,) = await jobs.submit(NewJob(operation="op", lane="short", input_json="{}"))
    after, success = await jobs.submit(
        job(condition("job_ended", f'{{"job": "{first}"}}')),
        job(condition("job_ended", f'{{"job": "{first}", "outcome": "succeeded"}}')),
    )
    await jobs.until(after, lambda row: first in (row.wait_detail or ""))
    (claimed,) = await jobs.store.claim("w", {"short": 1}, 10)
    await jobs.store.end_attempt(claimed.claim, Finish(outcome=Outcome.FAILED))
    await jobs.until(after, is_queued)
    assert f"{first} to succeed, which ended as failed" in (await jobs.ended(success)).error.message


async def test_a_job_that_succeeded_lets_its_followers_go(room: Any, jobs: Any) -> None:
    (first,) = await jobs.submit(NewJob(operation="op", lane="short", input_json="{}"))
    (claimed,) = await jobs.store.claim("w", {"short": 1}, 10)
    await jobs.store.end_attempt(
        claimed.claim, Finish(outcome=Outcome.SUCCEEDED, result=StoredResult(json="1"))
    )
    arguments = f'{{"job": "{first}", "outcome": "succeeded"}}'
    (job_id,) = await jobs.submit(job(condition("job_ended", arguments)))
    await jobs.until(job_id, is_queued)


async def test_waiting_for_a_job_that_does_not_exist_fails(room: Any, jobs: Any) -> None:
    (job_id,) = await jobs.submit(job(condition("job_ended", '{"job": "zzz"}')))
    assert "does not exist" in (await jobs.ended(job_id)).error.message


async def test_a_time_is_waited_for(room: Any, jobs: Any) -> None:
    at = (SystemClock().now() + timedelta(seconds=0.5)).isoformat()
    (job_id,) = await jobs.submit(job(condition("time_reached", f'{{"at": "{at}"}}')))
    await jobs.until(job_id, lambda row: row.wait_detail is not None)
    await jobs.until(job_id, is_queued)


async def test_a_target_is_waited_for_until_it_is_healthy(room: Any, jobs: Any) -> None:
    answers = [b"503 Busy", b"503 Busy", b"200 OK"]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        status = answers.pop(0) if answers else b"200 OK"
        writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    arguments = f'{{"url": "http://127.0.0.1:{port}/health", "interval_s": 0.05}}'
    (job_id,) = await jobs.submit(job(condition("target_healthy", arguments)))
    await jobs.until(job_id, lambda row: "status 503" in (row.wait_detail or ""))
    await jobs.until(job_id, is_queued)
    server.close()
    (down,) = await jobs.submit(job(condition("target_healthy", arguments)))
    await jobs.until(down, lambda row: "does not answer" in (row.wait_detail or ""))


async def test_the_wait_and_its_limit_survive_a_restart(
    store: SqliteStore, doorbell: UnixDoorbell, registry: Registry, jobs: Any
) -> None:
    """Trap 11: preconditions lived in one process's memory and died with it."""
    (job_id,) = await jobs.submit(job(condition("never", timeout_s=0.6)))
    for owner in ("w1", "w2"):
        lease = NamedLease(store, f"preconditions-{owner}", owner, 5.0)
        around = Surroundings(store, SystemClock(), HealthClient(), lambda: registry)
        room = WaitingRoom(around, doorbell, lease)
        await room.step()
        await jobs.until(job_id, lambda row: row.wait_detail == "never" or row.state.is_terminal)
        if owner == "w2":
            waited = await jobs.ended(job_id)
        room.close()
    assert waited.outcome is Outcome.TIMED_OUT
    assert waited.ended_at - waited.created_at < timedelta(seconds=30)


async def test_only_the_leases_holder_looks(
    store: SqliteStore, doorbell: Any, registry: Any
) -> None:
    around = Surroundings(store, SystemClock(), HealthClient(), lambda: registry)
    await store.submit([job(condition("never"))])
    rooms = [
        WaitingRoom(around, doorbell, NamedLease(store, "p", owner, 5.0)) for owner in ("a", "b")
    ]
    for room in rooms:
        await room.step()
    assert [len(room._waits) for room in rooms] == [1, 0]
    rooms[0].close()


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("gone", {}, "there are: broken, job_ended, never, target_healthy, third_look"),
        ("job_ended", {}, "job_ended: job: Field required"),
        ("job_ended", {"job": "a", "outcome": "failed"}, "outcome"),
        ("time_reached", {"at": "soon"}, "at"),
        ("target_healthy", {"url": "ftp://x"}, "url"),
        ("target_healthy", {"url": "http://x", "interval_s": 0}, "interval_s"),
        ("third_look", {}, "name"),
        ("never", {"x": 1}, "x"),
    ],
)
def test_what_cannot_be_is_refused_at_submit(
    registry: Registry, name: str, arguments: dict[str, Any], text: str
) -> None:
    with pytest.raises(ConfigError, match=text):
        check_precondition(registry, name, arguments)


def test_what_can_be_is_accepted(registry: Registry) -> None:
    check_precondition(registry, "job_ended", {"job": "a"})
    check_precondition(registry, "time_reached", {"at": "2026-11-30T12:00:00Z"})
    check_precondition(registry, "third_look", {"name": "x"})


async def test_a_job_of_another_workspace_is_one_that_does_not_exist(room: Any, jobs: Any) -> None:
    """J11: else who knows an id could learn how a foreign job stands."""
    foreign = NewJob(operation="op", lane="long", input_json="{}", workspace="lab")
    (foreign_id,) = await jobs.submit(foreign)
    asked = json.dumps({"job": foreign_id})
    (job_id,) = await jobs.submit(job(condition("job_ended", asked)))
    ended = await jobs.ended(job_id)
    assert ended.error.message == f"it waited for job {foreign_id}, which does not exist"
