"""What every store must do about the bound on all that waits: it holds exactly, at any time."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from direct_store import NOW, claim, job, opened, submit
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from headway.core.clock import ManualClock
from headway.core.states import JobState, Outcome
from headway.store.attempts import ClaimedJob, Finish, Release, RetryLater
from headway.store.jobs import JobQuery, JobRow
from headway.store.limits import WHOLE, Limit, QueueFull
from headway.store.sqlite.store import SqliteStore
from headway.store.submissions import Idempotency, NewJob

DONE = Finish(outcome=Outcome.SUCCEEDED)
RELEASED = Release(reason="the worker stops")
AGAIN = RetryLater(outcome=Outcome.FAILED, delay_s=0.0, reason="it asked for it")
LIMIT = 5


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW, monotonic_ns=10**15)


@pytest.fixture
async def store(tmp_path: Path, clock: ManualClock) -> AsyncIterator[SqliteStore]:
    store = opened(tmp_path / "state", clock, LIMIT)
    await store.open()
    yield store
    await store.close()


def full(waiting: int, submitted: int = 1) -> QueueFull:
    return QueueFull(workspace=None, user=WHOLE, limit=LIMIT, waiting=waiting, submitted=submitted)


async def test_the_limit_itself_is_reached_and_not_passed(store: SqliteStore) -> None:
    for _ in range(LIMIT):
        await submit(store, job())
    assert await store.submit([job()]) == full(waiting=LIMIT)
    await claim(store, 2)
    await submit(store, job(), job())
    assert await store.submit([job()]) == full(waiting=LIMIT)


async def test_a_batch_is_taken_or_refused_as_a_whole(store: SqliteStore) -> None:
    assert await store.submit([job()] * (LIMIT + 1)) == full(waiting=0, submitted=LIMIT + 1)
    await submit(store, *[job()] * LIMIT)
    assert len((await store.list_jobs(JobQuery())).jobs) == LIMIT


async def test_all_workspaces_and_users_count_together(store: SqliteStore) -> None:
    for name in ("one", "two", "three", "four", "five"):
        await submit(store, job(name, user="local"))
    assert await store.submit([job("six", user="system")]) == full(waiting=LIMIT)


async def test_whatever_a_job_waits_for_it_counts(store: SqliteStore) -> None:
    later = job(not_before=NOW + timedelta(days=1))
    await submit(store, later, later, job(concurrency_key="gpu"), job(concurrency_key="gpu"), job())
    assert await store.submit([job()]) == full(waiting=LIMIT)


async def test_a_job_that_was_submitted_before_is_found_also_in_a_full_store(
    store: SqliteStore,
) -> None:
    again = job(idempotency=Idempotency(key="once", fingerprint="f"))
    (first,) = await submit(store, again)
    await submit(store, *[job()] * (LIMIT - 1))
    (second,) = await submit(store, again)
    assert second.id == first.id


@pytest.mark.parametrize("end", [RELEASED, AGAIN])
async def test_what_comes_back_to_wait_is_kept_and_makes_the_store_fuller(
    store: SqliteStore, end: Any
) -> None:
    await submit(store, *[job()] * LIMIT)
    (claimed,) = await claim(store)
    await submit(store, job())
    assert await store.end_attempt(claimed.claim, end) is not None
    assert await store.submit([job()]) == full(waiting=LIMIT + 1)
    await claim(store, 2)
    await submit(store, job())


async def test_the_limits_of_workspaces_hold_beside_it(store: SqliteStore) -> None:
    await store.limits.set(Limit(workspace="lab", max_queued=1))
    await submit(store, job(), job("other"))
    answer = await store.submit([job()])
    assert isinstance(answer, QueueFull)
    assert (answer.workspace, answer.limit) == ("lab", 1)


async def test_a_store_that_is_opened_again_knows_what_waits_in_it(
    tmp_path: Path, store: SqliteStore, clock: ManualClock
) -> None:
    await submit(store, *[job()] * LIMIT)
    other = opened(tmp_path / "state", clock, LIMIT)
    await other.open()
    assert await other.submit([job()]) == full(waiting=LIMIT)
    await other.close()


async def test_without_a_limit_any_number_waits(tmp_path: Path, clock: ManualClock) -> None:
    store = opened(tmp_path / "state", clock, max_queued=None)
    await store.open()
    await submit(store, *[job()] * 1000)
    await store.close()


BYTES = 10_000


@pytest.fixture
async def small(tmp_path: Path, clock: ManualClock) -> AsyncIterator[SqliteStore]:
    """A store that takes few bytes and any number of jobs."""
    store = opened(tmp_path / "small", clock, max_bytes=BYTES)
    await store.open()
    yield store
    await store.close()


def large(size_bytes: int) -> NewJob:
    """With an input that has as many bytes, in half as many characters."""
    text = "ä" * ((size_bytes - 2) // 2)
    return msgspec.structs.replace(job(), input_json=f'"{text}"')


async def test_the_bytes_that_wait_are_bounded_too(small: SqliteStore) -> None:
    """A hundred thousand inputs of a megabyte are more than most disks have."""
    await submit(small, large(4_000), large(4_000))
    answer = await small.submit([large(4_000)])
    assert isinstance(answer, QueueFull)
    assert (answer.unit, answer.limit) == ("bytes", BYTES)
    assert answer.waiting >= 8_000
    assert answer.submitted >= 4_000
    await submit(small, job())


@pytest.mark.parametrize("end", [RELEASED, AGAIN])
async def test_the_bytes_of_what_runs_do_not_wait_and_of_what_comes_back_do(
    small: SqliteStore, end: Any
) -> None:
    await submit(small, large(4_000), large(4_000))
    (claimed,) = await claim(small)
    await submit(small, large(4_000))
    assert await small.end_attempt(claimed.claim, end) is not None
    assert isinstance(await small.submit([large(4_000)]), QueueFull)
    for row in (await small.list_jobs(JobQuery())).jobs:
        await small.request_cancel(row.id, "local")
    await submit(small, large(4_000), large(4_000))


async def test_a_configuration_has_bytes_like_an_input(small: SqliteStore) -> None:
    config = msgspec.structs.replace(job(), config_json=f'{{"x": "{"y" * BYTES}"}}')
    assert isinstance(await small.submit([config]), QueueFull)


class FullStore(RuleBasedStateMachine):
    """Submissions are refused exactly when what waits would be more than the limit."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.directory = tempfile.TemporaryDirectory()
        self.clock = ManualClock(NOW, monotonic_ns=10**15)
        self.store = opened(Path(self.directory.name) / "state", self.clock, LIMIT)
        self.claimed: list[ClaimedJob] = []

    @initialize()
    def open(self) -> None:
        self.runner.run(self.store.open())

    def teardown(self) -> None:
        self.runner.run(self.store.close())
        self.runner.close()
        self.directory.cleanup()

    def waiting(self) -> list[JobRow]:
        query = JobQuery(states=(JobState.PENDING,))
        return self.runner.run(self.store.list_jobs(query)).jobs

    @rule(
        workspaces=st.lists(st.sampled_from(["one", "two", "three"]), min_size=1, max_size=LIMIT),
        scheduled=st.booleans(),
    )
    def submit(self, workspaces: list[str], scheduled: bool) -> None:
        before = len(self.waiting())
        moment = self.clock.now() + timedelta(seconds=5) if scheduled else None
        jobs = [job(name, not_before=moment) for name in workspaces]
        answer = self.runner.run(self.store.submit(jobs))
        if before + len(jobs) > LIMIT:
            assert answer == full(waiting=before, submitted=len(jobs))
        else:
            assert isinstance(answer, list)

    @rule(count=st.integers(1, 3))
    def claim(self, count: int) -> None:
        self.claimed += self.runner.run(claim(self.store, count))

    @rule(data=st.data(), end=st.sampled_from([DONE, RELEASED, AGAIN]))
    def end(self, data: st.DataObject, end: Any) -> None:
        if self.claimed:
            claimed = self.claimed.pop(data.draw(st.integers(0, len(self.claimed) - 1)))
            self.runner.run(self.store.end_attempt(claimed.claim, end))

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if waiting := self.waiting():
            chosen = data.draw(st.sampled_from([row.id for row in waiting]))
            self.runner.run(self.store.request_cancel(chosen, "local"))

    @rule()
    def pass_time(self) -> None:
        self.clock.advance(5.0)


TestFullStore = FullStore.TestCase
TestFullStore.settings = settings(
    deadline=None, max_examples=25, stateful_step_count=30,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
