"""What every store must do about shares, limits and locks; and `why` held against the scheduler."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from direct_store import NOW, claim, job, opened, submit
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headway.core.clock import ManualClock
from headway.core.states import JobState, Outcome
from headway.store.attempts import ClaimedJob, Finish, RetryLater
from headway.store.jobs import JobQuery, JobRow, Precondition, StoredResult
from headway.store.limits import EVERY, Limit, Lock, QueueFull, Use
from headway.store.sqlite.store import SqliteStore
from headway.store.submissions import Idempotency
from headway.store.waits import HoldRule, Why

T = TypeVar("T")

DONE = Finish(outcome=Outcome.SUCCEEDED, result=StoredResult(json="1"))
USERS = ("local", "system")
"""Names that need no account."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW, monotonic_ns=10**15)


@pytest.fixture
async def store(tmp_path: Path, clock: ManualClock) -> AsyncIterator[SqliteStore]:
    store = opened(tmp_path / "state", clock)
    await store.open()
    yield store
    await store.close()


async def why(store: SqliteStore, row: JobRow) -> Why:
    found = await store.why(row.id)
    assert found is not None
    return found


class TestShares:
    """J25: within a lane workspaces are served by weight, users of one take turns."""

    async def test_weights_hold_across_claims_of_any_size(self, store: SqliteStore) -> None:
        for name, weight in (("one", 1.0), ("two", 2.0), ("four", 4.0)):
            await store.limits.set(Limit(workspace=name, weight=weight))
            await submit(store, *[job(name)] * 100)
        counts = Counter[str]()
        for size in (1, 2, 3, 4) * 7:
            counts.update(each.job.workspace for each in await claim(store, size))
        for name, weight in (("one", 1), ("two", 2), ("four", 4)):
            assert abs(counts[name] - 10 * weight) <= 1, counts

    async def test_a_single_job_passes_a_flood_of_a_neighbour(self, store: SqliteStore) -> None:
        await submit(store, *[job("flood")] * 500)
        await claim(store, 4)
        (single,) = await submit(store, job("quiet"))
        assert single.id in {each.job.id for each in await claim(store, 2)}

    async def test_and_so_does_another_users_in_the_same_workspace(
        self, store: SqliteStore
    ) -> None:
        await submit(store, *[job(user="local")] * 500)
        await claim(store, 4)
        (single,) = await submit(store, job(user="system"))
        assert single.id in {each.job.id for each in await claim(store, 2)}

    async def test_priority_passes_colleagues_and_not_neighbours(self, store: SqliteStore) -> None:
        await submit(store, *[job("a")] * 3, *[job("b")] * 3)
        (urgent,) = await submit(store, job("a", priority=100))
        claimed = [each.job for each in await claim(store, 4)]
        assert claimed[0].id == urgent.id or claimed[1].id == urgent.id
        assert Counter(each.workspace for each in claimed) == {"a": 2, "b": 2}

    async def test_a_lock_is_shared_as_fairly_as_a_lane(self, store: SqliteStore) -> None:
        await submit(store, *[job("flood", concurrency_key="gpu")] * 50)
        (single,) = await submit(store, job("quiet", concurrency_key="gpu"))
        order = []
        for _ in range(3):
            (claimed,) = await claim(store, 9)
            order.append(claimed.job.id)
            await store.end_attempt(claimed.claim, DONE)
        assert single.id in order


class TestLimits:
    async def test_running_jobs_of_a_workspace(self, store: SqliteStore) -> None:
        await store.limits.set(Limit(workspace="lab", max_running=2))
        rows = await submit(store, *[job()] * 4)
        claimed = await claim(store, 9)
        assert [each.job.id for each in claimed] == [rows[0].id, rows[1].id]
        told = await why(store, rows[3])
        assert (told.rule, told.position) == (HoldRule.WORKSPACE_LIMIT, 2)
        assert "may run 2 jobs at a time and runs 2" in told.text
        await store.end_attempt(claimed[0].claim, DONE)
        assert [each.job.id for each in await claim(store, 9)] == [rows[2].id]
        await store.limits.set(Limit(workspace="lab", max_running=3))
        assert [each.job.id for each in await claim(store, 9)] == [rows[3].id]

    async def test_running_jobs_of_each_user(self, store: SqliteStore) -> None:
        await store.limits.set(Limit(workspace=EVERY, user=EVERY, max_running=1))
        held, second = await submit(store, *[job()] * 2)
        (other,) = await submit(store, job(user="system"))
        assert {each.job.id for each in await claim(store, 9)} == {held.id, other.id}
        told = await why(store, second)
        assert told.rule is HoldRule.USER_LIMIT
        assert "'local' may run 1 job at a time in workspace 'lab' and runs 1" in told.text

    async def test_the_particular_comes_before_the_general(self, store: SqliteStore) -> None:
        await store.limits.set(Limit(workspace=EVERY, max_running=1))
        await store.limits.set(Limit(workspace="lab", max_running=3))
        await submit(store, *[job("lab")] * 9, *[job("other")] * 9)
        counts = Counter(each.job.workspace for each in await claim(store, 9))
        assert counts == {"lab": 3, "other": 1}

    async def test_zero_lets_none_start(self, store: SqliteStore) -> None:
        await store.limits.set(Limit(workspace="lab", max_running=0))
        (row,) = await submit(store, job())
        assert not await claim(store, 9)
        assert "may run 0 jobs" in (await why(store, row)).text

    async def test_waiting_jobs_of_a_workspace(self, store: SqliteStore) -> None:
        await store.limits.set(Limit(workspace="lab", max_queued=5))
        await submit(store, *[job()] * 3)
        refused = await store.submit([job()] * 3)
        assert refused == QueueFull(workspace="lab", user="", limit=5, waiting=3, submitted=3)
        assert len((await store.list_jobs(JobQuery())).jobs) == 3, "all of them or none"
        await submit(store, *[job()] * 2)
        await claim(store, 2)
        await submit(store, *[job()] * 2)

    async def test_waiting_jobs_of_a_user_whatever_they_wait_for(self, store: SqliteStore) -> None:
        await store.limits.set(Limit(workspace="lab", user="local", max_queued=2))
        later = NOW + timedelta(hours=1)
        first, _ = await submit(store, job(not_before=later), job(concurrency_key="k"))
        assert isinstance(await store.submit([job()]), QueueFull)
        await submit(store, job(user="system"), job("other"))
        await store.request_cancel(first.id, "local")
        await submit(store, job())

    async def test_a_repeated_submission_is_answered_though_the_queue_is_full(
        self, store: SqliteStore
    ) -> None:
        """J14: the job is there already; the limit has nothing to refuse."""
        once = job(idempotency=Idempotency(key="k", fingerprint="f"))
        (row,) = await submit(store, once)
        await store.limits.set(Limit(workspace="lab", max_queued=0))
        assert [each.id for each in await submit(store, once)] == [row.id]

    async def test_use_is_counted_by_workspace_and_user(self, store: SqliteStore) -> None:
        await submit(store, *[job()] * 3, job(user="system"), job("other"))
        await claim(store, 1)
        assert await store.limits.use("lab") == [
            Use(workspace="lab", user="local", running=1, waiting=2),
            Use(workspace="lab", user="system", running=0, waiting=1),
        ]
        assert len(await store.limits.use()) == 3

    async def test_limits_outlive_a_restart_and_are_seen_by_other_processes(
        self, store: SqliteStore, tmp_path: Path, clock: ManualClock
    ) -> None:
        other = opened(tmp_path / "state", clock)
        await other.open()
        limit = Limit(workspace="lab", max_running=1)
        await submit(store, *[job()] * 2)
        await other.limits.set(limit)
        assert len(await claim(store, 9)) == 1
        await other.close()
        assert await store.limits.all() == [limit]
        await store.limits.set(Limit(workspace="lab"))
        assert await store.limits.all() == []


class TestLocks:
    """N5: several keys, one lock; holder and position are named."""

    async def test_keys_of_one_lock_exclude_each_other(self, store: SqliteStore) -> None:
        await store.limits.set_lock(Lock(name="gpu0", members=("http://a", "http://b")))
        first, second = await submit(
            store, job(concurrency_key="http://a"), job(concurrency_key="http://b")
        )
        (held,) = await claim(store, 9)
        assert held.job.id == first.id
        told = await why(store, second)
        assert (told.rule, told.lock, told.holders) == (HoldRule.LOCK, "gpu0", (first.id,))
        assert told.position == 1
        assert f"the lock 'gpu0' (of the key 'http://b'), which is held by {first.id}" in told.text

    async def test_jobs_follow_their_key_into_a_lock_and_out_of_it(
        self, store: SqliteStore
    ) -> None:
        await submit(store, *[job(concurrency_key=key) for key in ("a", "b", "c")])
        (held,) = await claim(store, 1)
        await store.limits.set_lock(Lock(name="gpu", max_running=2, members=("a", "b", "c")))
        assert await store.limits.locks() == [
            Lock(name="gpu", max_running=2, members=("a", "b", "c"))
        ]
        assert len(await claim(store, 9)) == 1, "the running job holds one of the two places"
        await store.limits.set_lock(Lock(name="gpu", max_running=2, members=("a", "b")))
        assert len(await claim(store, 9)) == 1
        assert await store.limits.remove_lock("gpu")
        assert not await store.limits.remove_lock("gpu")
        assert held.job.lock_name == "a"

    async def test_who_is_at_a_running_limit_does_not_keep_a_lock_from_others(
        self, store: SqliteStore
    ) -> None:
        await store.limits.set(Limit(workspace="busy", max_running=1))
        await submit(store, *[job("busy", concurrency_key="disk")] * 2)
        await submit(store, *[job("busy", concurrency_key="gpu")] * 2)
        (other,) = await submit(store, job("quiet", concurrency_key="gpu"))
        claimed = await claim(store, 9)
        assert other.id in {each.job.id for each in claimed}
        assert len(claimed) == 2

    async def test_a_holder_of_another_workspace_is_counted_and_not_named(
        self, store: SqliteStore
    ) -> None:
        (held,) = await submit(store, job("secret", concurrency_key="gpu"))
        await claim(store)
        (row,) = await submit(store, job("lab", concurrency_key="gpu"))
        told = await why(store, row)
        assert told.holders == ()
        assert "held by 1 of other workspaces" in told.text
        assert held.id not in told.text


class WhyMachine(RuleBasedStateMachine):
    """`why` foretells what the scheduler does, whatever happened before (N12)."""

    @initialize()
    def open(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.directory = Path(tempfile.mkdtemp())
        self.clock = ManualClock(NOW, monotonic_ns=10**15)
        self.store = opened(self.directory, self.clock)
        self.do(self.store.open())
        self.running: list[ClaimedJob] = []

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.do(self.store.close())
            self.loop.close()
            shutil.rmtree(self.directory)

    def do(self, call: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(call)

    # --- what happens ---

    @rule(
        workspace=st.sampled_from(["red", "red", "blue", "green"]),
        user=st.sampled_from(USERS),
        priority=st.sampled_from([0, 0, 0, 5]),
        key=st.sampled_from([None, None, None, "a", "b", "c"]),
        waits=st.sampled_from(["", "", "", "schedule", "precondition"]),
        count=st.integers(1, 3),
    )
    def submit(
        self, workspace: str, user: str, priority: int, key: str | None, waits: str, count: int
    ) -> None:
        new = job(
            workspace,
            user,
            priority=priority,
            concurrency_key=key,
            not_before=self.clock.now() + timedelta(seconds=5) if waits == "schedule" else None,
            preconditions=(Precondition(name="p"),) if waits == "precondition" else (),
        )
        self.do(submit(self.store, *[new] * count))

    @rule(number=st.integers(0, 99), again=st.booleans())
    def end(self, number: int, again: bool) -> None:
        if not self.running:
            return
        ended = self.running.pop(number % len(self.running))
        retry = RetryLater(outcome=Outcome.FAILED, delay_s=3.0, reason="r")
        assert self.do(self.store.end_attempt(ended.claim, retry if again else DONE)) is not None

    @rule(number=st.integers(0, 99))
    def cancel(self, number: int) -> None:
        waiting = self.waiting()
        if waiting:
            self.do(self.store.request_cancel(waiting[number % len(waiting)].id, "local"))

    @rule(
        workspace=st.sampled_from(["red", "blue", EVERY]),
        user=st.sampled_from(["", "", "local", EVERY]),
        running=st.sampled_from([None, 0, 1, 2, 3]),
        weight=st.sampled_from([None, 0.5, 3.0]),
    )
    def limit(self, workspace: str, user: str, running: int | None, weight: float | None) -> None:
        limit = Limit(workspace=workspace, user=user, max_running=running, weight=weight)
        self.do(self.store.limits.set(limit))

    @rule(members=st.sampled_from([("a",), ("a", "b"), ("a", "b", "c")]), limit=st.integers(1, 2))
    def lock(self, members: tuple[str, ...], limit: int) -> None:
        self.do(self.store.limits.set_lock(Lock(name="gpu", max_running=limit, members=members)))

    @rule()
    def unlock(self) -> None:
        self.do(self.store.limits.remove_lock("gpu"))

    @rule()
    def time_passes(self) -> None:
        self.clock.advance(3.0)

    # --- what must be foretold ---

    @rule(count=st.integers(1, 5))
    def claims_are_foretold(self, count: int) -> None:
        """The set claimed, and its order, is exactly what `why` said was next.

        Where a claim fills somebody's running limit, the lock at whose head they stood passes on,
        and the slots that are left go to whom it reached.
        """
        self.do(self.store.claim("w", {}, 60.0))  # lets due timers run out
        foretold = {}
        locked = set()
        for row in self.waiting():
            told = self.why(row)
            if told.rule is HoldRule.TURN and told.lane_position is not None:
                assert told.lane_position not in foretold, "two jobs at one place"
                foretold[told.lane_position] = row.id
            if told.rule is HoldRule.LOCK:
                locked.add(row.id)
        expected = [foretold[place] for place in sorted(foretold) if place <= count]
        claimed = self.do(claim(self.store, count))
        self.running += claimed
        ids = [each.job.id for each in claimed]
        assert ids[: len(expected)] == expected
        assert set(ids[len(expected) :]) <= locked

    @rule(number=st.integers(0, 99))
    def without_what_holds_it_a_job_starts(self, number: int) -> None:
        self.do(self.store.claim("w", {}, 60.0))  # lets due timers run out
        waiting = self.waiting()
        if not waiting:
            return
        row = waiting[number % len(waiting)]
        removed: list[HoldRule] = []
        for _ in range(len(HoldRule) + 1):
            told = self.why(row)
            assert told.rule is not None
            assert told.rule not in removed, f"{told.rule} was removed and is named again"
            removed.append(told.rule)
            if told.rule is HoldRule.TURN:
                assert told.lane_position is not None
                self.running += self.do(claim(self.store, told.lane_position))
                break
            self.remove(row, told)
        assert row.id in {each.job.id for each in self.running}, removed

    def remove(self, row: JobRow, told: Why) -> None:
        """Remove the cause that `why` named, and nothing else."""
        store = self.store
        if told.rule is HoldRule.WORKSPACE_LIMIT:
            self.do(store.limits.set(Limit(workspace=row.workspace, max_running=1000)))
        elif told.rule is HoldRule.USER_LIMIT:
            self.do(
                store.limits.set(
                    Limit(workspace=row.workspace, user=row.created_by, max_running=1000)
                )
            )
        elif told.rule is HoldRule.LOCK:
            assert told.lock is not None
            self.do(store.set_concurrency_limit(told.lock, 1000))
        elif told.rule is HoldRule.PRECONDITION:
            assert self.do(store.preconditions_met(row.id))
        else:
            assert told.until is not None
            left_s = (told.until - self.clock.now()).total_seconds()
            self.clock.advance(max(0.0, left_s))
            self.do(store.claim("w", {}, 60.0))

    @invariant()
    def every_lock_is_held_by_as_many_as_may(self) -> None:
        if not hasattr(self, "store"):
            return
        places = {each.name: each.max_running for each in self.do(self.store.limits.locks())}
        rows = self.do(self.store.list_jobs(JobQuery(states=(JobState.PENDING,), limit=1000))).jobs
        queued = Counter(
            row.lock_name for row in rows if row.lock_name and row.wait_reason == "queued"
        )
        for lock, count in queued.items():
            assert count <= places.get(lock, 1), "more jobs may be claimed than the lock has places"

    def waiting(self) -> list[JobRow]:
        query = JobQuery(states=(JobState.PENDING,), limit=1000)
        return list(self.do(self.store.list_jobs(query)).jobs)

    def why(self, row: JobRow) -> Why:
        return self.do(why(self.store, row))


WhyMachine.TestCase.settings = settings(
    max_examples=20,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestWhyForetells = WhyMachine.TestCase
