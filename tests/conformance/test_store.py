"""What every store must do. Each test runs on each store."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headway.core.clock import ManualClock
from headway.core.failure import ErrorInfo
from headway.core.retry import RetryPolicy
from headway.core.statedir import StateDir
from headway.core.states import JobState, Outcome, WaitReason
from headway.store.attempts import Claim, ClaimedJob, Finish, Release, RetryLater
from headway.store.jobs import (
    Ambiguous,
    CancelResult,
    JobQuery,
    JobRow,
    NotFound,
    Precondition,
    Progress,
    RetentionRule,
    StoredResult,
    Usage,
)
from headway.store.sqlite.schema import ensure_schema
from headway.store.sqlite.store import SqliteStore
from headway.store.store import Store
from headway.store.submissions import Idempotency, IdempotencyConflict, NewJob, submission_again

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
LEASE_S = 10.0
DONE = Finish(outcome=Outcome.SUCCEEDED, result=StoredResult(json="42"))
FAILED = Finish(outcome=Outcome.FAILED, error=ErrorInfo(type="ValueError", message="no"))
RETRYABLE = RetryPolicy(max_attempts=10, retryable=True, quarantine_after=3, jitter=0.0)

OpenStore = Callable[[], Awaitable[Store]]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW, monotonic_ns=1_000_000_000_000)


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A fresh database; migrating anew for each test takes most of its time."""
    state_dir = StateDir(tmp_path_factory.mktemp("migrated"))
    state_dir.create()
    ensure_schema(state_dir.database, state_dir.writer_lock)
    return state_dir.database.read_bytes()


@pytest.fixture(params=["sqlite"])
async def open_store(
    request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock, migrated: bytes
) -> AsyncIterator[OpenStore]:
    """Opens the store under test; called again, as another process would open the same data."""
    opened: list[Store] = []
    StateDir(tmp_path / "state").create()
    StateDir(tmp_path / "state").database.write_bytes(migrated)

    async def open_one() -> Store:
        assert request.param == "sqlite"
        store = SqliteStore(StateDir(tmp_path / "state"), clock, random.Random(1))
        await store.open()
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        await store.close()


@pytest.fixture
async def store(open_store: OpenStore) -> Store:
    return await open_store()


def job(operation: str = "train", lane: str = "long", **options: object) -> NewJob:
    return NewJob(operation=operation, lane=lane, input_json='{"x": 1}', **options)  # type: ignore[arg-type]


async def submit(store: Store, *jobs: NewJob) -> list[JobRow]:
    submitted = await store.submit(jobs)
    assert isinstance(submitted, list)
    return [each.job for each in submitted]


async def submit_one(store: Store, **options: object) -> JobRow:
    (row,) = await submit(store, job(**options))  # type: ignore[arg-type]
    return row


async def claim(
    store: Store, owner: str = "w1", limit: int = 1, lane: str = "long"
) -> list[ClaimedJob]:
    return await store.claim(owner, {lane: limit}, LEASE_S)


async def claim_one(store: Store, owner: str = "w1") -> Claim:
    (claimed,) = await claim(store, owner)
    return claimed.claim


async def get(store: Store, job_id: str) -> JobRow:
    row = await store.find(job_id)
    assert isinstance(row, JobRow)
    return row


async def kinds(store: Store, job_id: str) -> list[str]:
    return [event.kind for event in await store.events(job_id)]


class TestSubmit:
    async def test_a_job_is_there_as_submitted(self, store: Store) -> None:
        row = await submit_one(
            store, labels={"team": "a"}, env={"APP_X": "1"}, config_json='{"y":2}', timeout_s=5.0,
            priority=3, created_by="ann", workspace="lab", memory_limit_bytes=7, grace_s=1.5,
            retry=RETRYABLE, keep_result=False,
        )  # fmt: skip
        assert row.state is JobState.PENDING
        assert row.wait_reason is WaitReason.QUEUED
        assert (row.labels, row.timeout_s, row.priority) == ({"team": "a"}, 5.0, 3)
        assert (row.created_by, row.workspace, row.created_at) == ("ann", "lab", NOW)
        payload = await store.payload(row.id)
        assert payload is not None
        assert (payload.input_json, payload.config_json) == ('{"x": 1}', '{"y":2}')
        assert (payload.env, payload.retry) == ({"APP_X": "1"}, RETRYABLE)
        assert (payload.memory_limit_bytes, payload.grace_s) == (7, 1.5)
        assert not payload.keep_result
        assert await kinds(store, row.id) == ["submitted"]

    async def test_ids_sort_in_order_of_submission(self, store: Store) -> None:
        rows = await submit(store, *[job() for _ in range(50)])
        rows += await submit(store, job())
        assert [row.id for row in rows] == sorted(row.id for row in rows)

    async def test_what_was_submitted_outlives_the_process(
        self, store: Store, open_store: OpenStore
    ) -> None:
        row = await submit_one(store)
        await store.close()
        assert await get(await open_store(), row.id) == row

    async def test_equal_key_and_request_give_the_same_job(self, store: Store) -> None:
        """J14, trap 15: a retried POST launched twice."""
        once = job(idempotency=Idempotency(key="k", fingerprint="f"))
        first = await store.submit([once])
        again = await store.submit([once])
        assert isinstance(first, list)
        assert isinstance(again, list)
        assert (first[0].created, again[0].created) == (True, False)
        assert first[0].job == again[0].job

    async def test_equal_key_for_another_request_stores_nothing(self, store: Store) -> None:
        row = await submit_one(store, idempotency=Idempotency(key="k", fingerprint="f"))
        conflict = await store.submit(
            [job(), job(idempotency=Idempotency(key="k", fingerprint="g"))]
        )
        assert conflict == IdempotencyConflict(key="k", job_id=row.id)
        assert len((await store.list_jobs(JobQuery())).jobs) == 1

    async def test_a_key_twice_in_one_batch_is_one_job(self, store: Store) -> None:
        once = job(idempotency=Idempotency(key="k", fingerprint="f"))
        first, second = await submit(store, once, once)
        assert first == second

    async def test_keys_belong_to_a_workspace(self, store: Store) -> None:
        key = Idempotency(key="k", fingerprint="f")
        a = await submit_one(store, idempotency=key, workspace="a")
        b = await submit_one(store, idempotency=key, workspace="b")
        assert a.id != b.id

    async def test_fifty_concurrent_posts_with_one_key_make_one_job(self, store: Store) -> None:
        once = job(idempotency=Idempotency(key="k", fingerprint="f"))
        answers = await asyncio.gather(*(submit(store, once) for _ in range(50)))
        assert len({rows[0].id for rows in answers}) == 1

    async def test_an_ended_jobs_work_is_submitted_again_as_a_new_job(self, store: Store) -> None:
        row = await submit_one(store, labels={"a": "b"}, env={"APP_X": "1"})
        await store.end_attempt(await claim_one(store), FAILED)
        payload = await store.payload(row.id)
        assert payload is not None
        (new,) = await submit(store, submission_again(row, payload, "bob"))
        assert (new.retry_of, new.created_by, new.labels) == (row.id, "bob", {"a": "b"})
        assert await store.payload(new.id) == payload
        assert (await get(store, row.id)).state is JobState.FAILED


class TestFind:
    async def test_by_unique_prefix_also_as_read_aloud(self, store: Store) -> None:
        row = await submit_one(store)
        assert await store.find(row.id[:20]) == row
        assert await store.find(f" {row.id[:20].upper().replace('0', 'O')} ") == row

    async def test_an_ambiguous_prefix_is_refused_with_examples(self, store: Store) -> None:
        rows = await submit(store, job(), job())
        found = await store.find(rows[0].id[:4])
        assert isinstance(found, Ambiguous)
        assert set(found.examples) == {row.id for row in rows}

    @pytest.mark.parametrize("reference", ["zzzz", "", "not an id", "0" * 26, "0" * 40, "%"])
    async def test_what_is_not_there(self, store: Store, reference: str) -> None:
        await submit_one(store)
        assert await store.find(reference) == NotFound(reference=reference)

    async def test_another_workspaces_job_does_not_exist(self, store: Store) -> None:
        row = await submit_one(store, workspace="a")
        assert await store.find(row.id, workspace="a") == row
        assert isinstance(await store.find(row.id, workspace="b"), NotFound)
        assert isinstance(await store.find(row.id[:20], workspace="b"), NotFound)


class TestList:
    async def test_pages_hold_every_job_once_newest_first(self, store: Store) -> None:
        rows = await submit(store, *[job() for _ in range(7)])
        seen, before = [], None
        while True:
            page = await store.list_jobs(JobQuery(limit=3, before=before))
            seen += [row.id for row in page.jobs]
            if page.cursor is None:
                break
            before = page.cursor
        assert seen == [row.id for row in reversed(rows)]

    async def test_filters_combine(self, store: Store) -> None:
        await submit(
            store,
            job("a", labels={"t": "1", "u": "1"}),
            job("a", labels={"t": "1"}, created_by="ann"),
            job("b", labels={"t": "2"}, workspace="lab"),
        )
        await store.end_attempt(await claim_one(store), FAILED)

        async def count(**query: object) -> int:
            return len((await store.list_jobs(JobQuery(**query))).jobs)  # type: ignore[arg-type]

        assert await count(operation="a") == 2
        assert await count(states=(JobState.FAILED,)) == 1
        assert await count(states=(JobState.FAILED, JobState.PENDING)) == 3
        assert await count(operation="a", states=(JobState.PENDING,)) == 1
        assert await count(labels={"t": "1"}) == 2
        assert await count(labels={"t": "1", "u": "1"}) == 1
        assert await count(labels={"t": "1"}, states=(JobState.FAILED,)) == 1
        assert await count(labels={"t": "1"}, created_by="ann", operation="a") == 1
        assert await count(workspace="lab") == 1
        assert await count(operation="none") == 0

    async def test_pages_of_several_states_merge_in_order(self, store: Store) -> None:
        rows = await submit(store, *[job() for _ in range(6)])
        for claimed in await claim(store, limit=3):
            await store.end_attempt(claimed.claim, DONE)
        query = JobQuery(states=(JobState.PENDING, JobState.SUCCEEDED), limit=4)
        page = await store.list_jobs(query)
        assert [row.id for row in page.jobs] == [row.id for row in reversed(rows)][:4]


class TestClaim:
    async def test_priority_first_then_order_of_submission(self, store: Store) -> None:
        """J2, J25."""
        low1, high, low2 = await submit(store, job(), job(priority=5), job())
        claimed = await claim(store, limit=3)
        assert [each.job.id for each in claimed] == [high.id, low1.id, low2.id]

    async def test_a_claim_carries_all_that_an_attempt_needs(
        self, store: Store, clock: ManualClock
    ) -> None:
        row = await submit_one(store, env={"APP_X": "1"}, config_json='{"y":2}')
        clock.advance(2)
        (claimed,) = await claim(store, "w1")
        assert claimed.claim == Claim(job_id=row.id, attempt=1, owner="w1")
        assert claimed.job.state is JobState.RUNNING
        assert claimed.payload == await store.payload(row.id)
        assert claimed.ready_at == NOW
        assert claimed.lease_until_ns == clock.monotonic_ns() + int(LEASE_S * 1e9)

    async def test_no_job_is_claimed_twice(self, store: Store, open_store: OpenStore) -> None:
        await submit(store, *[job() for _ in range(40)])
        other = await open_store()
        answers = await asyncio.gather(
            *(claim(each, f"w{n}", 3) for n in range(10) for each in (store, other))
        )
        ids = [claimed.job.id for answer in answers for claimed in answer]
        assert len(ids) == len(set(ids)) == 40

    async def test_lanes_are_apart(self, store: Store) -> None:
        await submit(store, job(lane="long"), job(lane="short"), job(lane="short"))
        claimed = await store.claim("w1", {"short": 5}, LEASE_S)
        assert [each.job.lane for each in claimed] == ["short", "short"]
        both = await store.claim("w1", {"short": 5, "long": 5}, LEASE_S)
        assert [each.job.lane for each in both] == ["long"]

    async def test_a_scheduled_job_waits_for_its_time(
        self, store: Store, clock: ManualClock
    ) -> None:
        row = await submit_one(store, not_before=NOW + timedelta(seconds=60))
        assert row.wait_reason is WaitReason.SCHEDULED
        assert await store.next_run_at() == NOW + timedelta(seconds=60)
        assert not await claim(store)
        clock.advance(60)
        assert [each.job.id for each in await claim(store)] == [row.id]
        assert await store.next_run_at() is None

    async def test_a_time_that_has_passed_is_no_wait(self, store: Store) -> None:
        row = await submit_one(store, not_before=NOW - timedelta(seconds=1))
        assert row.wait_reason is WaitReason.QUEUED


class TestEnd:
    async def test_success_keeps_the_result(self, store: Store, clock: ManualClock) -> None:
        row = await submit_one(store)
        current = await claim_one(store)
        clock.advance(3)
        usage = Usage(peak_rss_bytes=9, cpu_s=0.5, timeline={"ran": 1.5})
        ended = await store.end_attempt(
            current,
            Finish(outcome=Outcome.SUCCEEDED, result=StoredResult(json="[1]"), usage=usage),
        )
        assert ended == await get(store, row.id)
        assert ended is not None
        assert (ended.state, ended.outcome) == (JobState.SUCCEEDED, Outcome.SUCCEEDED)
        assert (ended.started_at, ended.ended_at) == (NOW, NOW + timedelta(seconds=3))
        assert ended.owner is None
        assert await store.result(row.id) == StoredResult(json="[1]")
        (attempt,) = await store.attempts(row.id)
        assert (attempt.attempt, attempt.owner, attempt.usage) == (1, "w1", usage)
        assert await kinds(store, row.id) == ["submitted", "claimed", "ended"]

    @pytest.mark.parametrize(
        ("outcome", "state"),
        [
            (Outcome.FAILED, JobState.FAILED),
            (Outcome.TIMED_OUT, JobState.FAILED),
            (Outcome.OUT_OF_MEMORY, JobState.FAILED),
            (Outcome.CANCELLED, JobState.CANCELLED),
        ],
    )
    async def test_every_outcome_has_its_state(
        self, store: Store, outcome: Outcome, state: JobState
    ) -> None:
        await submit_one(store)
        error = ErrorInfo(type="E", message="m", cause=ErrorInfo(type="C", message="n"))
        ended = await store.end_attempt(
            await claim_one(store), Finish(outcome=outcome, error=error)
        )
        assert ended is not None
        assert (ended.state, ended.outcome, ended.error) == (state, outcome, error)
        assert await store.result(ended.id) is None

    async def test_a_terminal_state_is_final(self, store: Store, clock: ManualClock) -> None:
        """Trap 6: a job cancelled, then "succeeded" by its late worker."""
        row = await submit_one(store, retry=RETRYABLE)
        current = await claim_one(store)
        ended = await store.end_attempt(current, Finish(outcome=Outcome.CANCELLED))
        for late in (DONE, FAILED, Release(reason="r"), retry(0)):
            assert await store.end_attempt(current, late) is None
        assert not await store.progress(current, Progress(fraction=1.0))
        assert not await store.add_event(current, "artifact", "{}")
        assert await store.renew([current], LEASE_S) == [current]
        assert await store.request_cancel(row.id, "x") is CancelResult.ALREADY_ENDED
        clock.advance(1000)
        assert await store.rescue(["w1"]) == []
        assert await get(store, row.id) == ended
        assert await store.result(row.id) is None

    async def test_a_retry_waits_without_a_slot_and_then_really_runs(
        self, store: Store, clock: ManualClock
    ) -> None:
        """Traps 1 and 11, J7."""
        row = await submit_one(store)
        error = ErrorInfo(type="Retry", message="no GPU")
        later = await store.end_attempt(await claim_one(store), retry(30, error=error))
        assert later is not None
        assert (later.state, later.wait_reason) == (JobState.PENDING, WaitReason.BACKOFF)
        assert (later.run_at, later.error) == (NOW + timedelta(seconds=30), error)
        assert not await claim(store)
        clock.advance(30)
        current = await claim_one(store)
        assert current.attempt == 2
        ended = await store.end_attempt(current, DONE)
        assert ended is not None
        assert ended.error is None
        assert [each.outcome for each in await store.attempts(row.id)] == [
            Outcome.FAILED,
            Outcome.SUCCEEDED,
        ]

    async def test_backoff_survives_a_restart(
        self, store: Store, open_store: OpenStore, clock: ManualClock
    ) -> None:
        """Trap 11: backoff lived in one process's memory and died with it."""
        row = await submit_one(store)
        await store.end_attempt(await claim_one(store), retry(30))
        await store.close()
        again = await open_store()
        clock.advance(30)
        assert (await claim_one(again)).job_id == row.id

    async def test_backoff_does_not_wait_for_a_clock_that_was_set_back(
        self, store: Store, clock: ManualClock
    ) -> None:
        """Fault suite, "clock stepped": rows from the future."""
        row = await submit_one(store)
        scheduled = await submit_one(store, not_before=NOW + timedelta(seconds=60))
        await store.end_attempt(await claim_one(store), retry(30))
        assert await store.end_future_backoffs() == 0, "an ordinary backoff is left alone"
        clock.set_by(-7200)
        assert await store.end_future_backoffs() == 1
        assert (await claim_one(store)).job_id == row.id
        assert (await store.find(scheduled.id)).wait_reason is WaitReason.SCHEDULED  # type: ignore[union-attr]

    async def test_a_drained_attempt_does_not_count(self, store: Store) -> None:
        row = await submit_one(store)
        back = await store.end_attempt(await claim_one(store), Release(reason="drain"))
        assert back is not None
        assert (back.state, back.wait_reason, back.released) == (
            JobState.PENDING,
            WaitReason.QUEUED,
            1,
        )
        assert (await claim_one(store)).attempt == 2
        assert [each.outcome for each in await store.attempts(row.id)] == [None]

    async def test_progress_replaces_progress(self, store: Store) -> None:
        row = await submit_one(store)
        current = await claim_one(store)
        assert await store.progress(current, Progress(fraction=0.1))
        newest = Progress(fraction=0.5, message="half", numbers={"loss": 0.25})
        assert await store.progress(current, newest)
        assert (await get(store, row.id)).progress == newest


def retry(delay_s: float, **options: object) -> RetryLater:
    return RetryLater(outcome=Outcome.FAILED, delay_s=delay_s, reason="again", **options)  # type: ignore[arg-type]


class TestFencing:
    """J5: a stale attempt writes nothing, whoever it is."""

    async def test_a_paused_worker_cannot_touch_the_next_attempt(
        self, store: Store, clock: ManualClock
    ) -> None:
        """Trap 6: a paused worker of a lost lease ended the second attempt's job."""
        row = await submit_one(store, retry=RETRYABLE)
        stale = await claim_one(store, "paused")
        clock.advance(LEASE_S)
        (rescued,) = await store.rescue([])
        assert rescued.claim == stale
        current = await claim_one(store, "other")
        before = await get(store, row.id)
        assert await store.renew([stale, current], LEASE_S) == [stale]
        assert not await store.progress(stale, Progress(fraction=0.9))
        assert not await store.add_event(stale, "artifact", "{}")
        for end in (DONE, FAILED, Release(reason="r"), retry(1)):
            assert await store.end_attempt(stale, end) is None
        assert await get(store, row.id) == before
        ended = await store.end_attempt(current, DONE)
        assert ended is not None
        assert ended.attempt == 2

    @pytest.mark.parametrize("change", [{"owner": "w2"}, {"attempt": 2}, {"job_id": "0" * 26}])
    async def test_every_part_of_the_claim_counts(
        self, store: Store, change: dict[str, object]
    ) -> None:
        await submit_one(store)
        right = await claim_one(store)
        wrong = Claim(**{"job_id": right.job_id, "attempt": 1, "owner": "w1"} | change)  # type: ignore[arg-type]
        assert await store.end_attempt(wrong, DONE) is None
        assert await store.end_attempt(right, DONE) is not None

    async def test_a_renewed_lease_is_not_rescued(self, store: Store, clock: ManualClock) -> None:
        """Trap 22: rescue by elapsed time alone re-ran every job longer than the limit."""
        await submit_one(store)
        current = await claim_one(store)
        for _ in range(5):
            clock.advance(LEASE_S * 0.9)
            assert await store.renew([current], LEASE_S) == []
            assert not await store.any_lease_over()
            assert await store.rescue([]) == []
        assert await store.end_attempt(current, DONE) is not None

    async def test_running_names_the_owners_attempts(self, store: Store) -> None:
        await submit(store, job(), job())
        a, b = await claim_one(store, "w1"), await claim_one(store, "w2")
        assert await store.running("w1") == [a]
        assert sorted(await store.owners()) == ["w1", "w2"]
        await store.end_attempt(a, DONE)
        assert await store.owners() == [b.owner]


class TestRescue:
    async def test_a_dead_owners_job_runs_again_at_once(self, store: Store) -> None:
        """The lease need not run out (P15)."""
        row = await submit_one(store, retry=RETRYABLE)
        await claim_one(store)
        (rescued,) = await store.rescue(["w1"])
        assert rescued.state is JobState.PENDING
        again = await get(store, row.id)
        assert (again.wait_reason, again.crashes) == (WaitReason.QUEUED, 1)
        assert again.error is not None
        assert again.error.type == "WorkerLost"
        assert "rescued" in await kinds(store, row.id)

    async def test_a_job_that_may_not_run_twice_fails_as_worker_lost(self, store: Store) -> None:
        """Trap 3: the row said RUNNING for ever."""
        row = await submit_one(store)
        await claim_one(store)
        await store.rescue(["w1"])
        ended = await get(store, row.id)
        assert (ended.state, ended.outcome) == (JobState.FAILED, Outcome.WORKER_LOST)

    async def test_a_job_that_kills_its_workers_is_quarantined(
        self, store: Store, clock: ManualClock
    ) -> None:
        """Trap 25a: it looped for ever."""
        row = await submit_one(store, retry=RETRYABLE)
        for _ in range(3):
            assert (await get(store, row.id)).state is JobState.PENDING
            clock.advance(1000)
            await claim_one(store)
            await store.rescue(["w1"])
        ended = await get(store, row.id)
        assert (ended.outcome, ended.attempt, ended.crashes) == (Outcome.QUARANTINED, 3, 3)

    async def test_attempts_run_out(self, store: Store, clock: ManualClock) -> None:
        policy = RetryPolicy(max_attempts=2, retryable=True, quarantine_after=9)
        row = await submit_one(store, retry=policy)
        for _ in range(2):
            clock.advance(1000)
            await claim_one(store)
            await store.rescue(["w1"])
        assert (await get(store, row.id)).outcome is Outcome.WORKER_LOST

    async def test_a_cancel_that_was_asked_for_is_honoured(self, store: Store) -> None:
        """J6: durable when the server dies between intent and signal."""
        row = await submit_one(store, retry=RETRYABLE)
        await claim_one(store)
        assert await store.request_cancel(row.id, "ann") is CancelResult.REQUESTED
        await store.rescue(["w1"])
        assert (await get(store, row.id)).state is JobState.CANCELLED

    async def test_a_retry_after_a_cancel_was_asked_for_is_a_cancel(self, store: Store) -> None:
        for end in (retry(5), Release(reason="drain")):
            row = await submit_one(store)
            current = await claim_one(store)
            await store.request_cancel(row.id, "ann")
            ended = await store.end_attempt(current, end)
            assert ended is not None
            assert ended.state is JobState.CANCELLED


class TestCancel:
    async def test_a_waiting_job_is_cancelled_at_once(
        self, store: Store, clock: ManualClock
    ) -> None:
        """J6: queued, scheduled, locked, backing off, waiting for a precondition."""
        holder, locked = await submit(store, *[job(concurrency_key="k")] * 2)
        assert (await claim_one(store)).job_id == holder.id
        backoff = await submit_one(store)
        await store.end_attempt(await claim_one(store), retry(60))
        queued = await submit_one(store)
        scheduled = await submit_one(store, not_before=NOW + timedelta(hours=1))
        waiting = await submit_one(store, preconditions=(Precondition(name="p"),))
        for row in (locked, backoff, queued, scheduled, waiting):
            assert await store.request_cancel(row.id, "ann") is CancelResult.CANCELLED
            ended = await get(store, row.id)
            assert (ended.state, ended.outcome) == (JobState.CANCELLED, Outcome.CANCELLED)
            assert ended.wait_reason is None
        clock.advance(7200)
        await store.end_attempt(Claim(job_id=holder.id, attempt=1, owner="w1"), DONE)
        assert not await claim(store, limit=10)

    async def test_a_running_jobs_cancel_is_stored_for_its_owner(self, store: Store) -> None:
        row = await submit_one(store)
        current = await claim_one(store)
        assert await store.cancel_requested("w1") == []
        assert await store.request_cancel(row.id, "ann") is CancelResult.REQUESTED
        assert await store.request_cancel(row.id, "bob") is CancelResult.REQUESTED
        assert await store.cancel_requested("w1") == [current]
        assert await store.cancel_requested("w2") == []
        running = await get(store, row.id)
        assert (running.state, running.cancel_requested_at) == (JobState.RUNNING, NOW)
        assert (await kinds(store, row.id)).count("cancel_requested") == 1

    async def test_a_job_that_finishes_first_has_succeeded(self, store: Store) -> None:
        row = await submit_one(store)
        current = await claim_one(store)
        await store.request_cancel(row.id, "ann")
        ended = await store.end_attempt(current, DONE)
        assert ended is not None
        assert ended.outcome is Outcome.SUCCEEDED

    async def test_no_job_no_cancel(self, store: Store) -> None:
        assert await store.request_cancel("0" * 26, "ann") is CancelResult.NOT_FOUND


class TestConcurrencyKeys:
    """J25, N5, trap 53."""

    async def test_one_at_a_time_in_queue_order(self, store: Store) -> None:
        a, b, urgent = await submit(
            store, job(concurrency_key="gpu"), job(concurrency_key="gpu"),
            job(concurrency_key="gpu", priority=9),
        )  # fmt: skip
        assert [row.wait_reason for row in (a, b, urgent)] == [
            WaitReason.LOCKED,
            WaitReason.LOCKED,
            WaitReason.QUEUED,
        ]
        order = []
        while claimed := await claim(store, limit=5):
            assert len(claimed) == 1
            order.append(claimed[0].job.id)
            await store.end_attempt(claimed[0].claim, DONE)
        assert order == [urgent.id, a.id, b.id]

    async def test_a_newcomer_does_not_overtake(self, store: Store) -> None:
        """Also not in the moment in which the key is free."""
        a, b = await submit(store, *[job(concurrency_key="gpu")] * 2)
        current = await claim_one(store)
        await store.end_attempt(current, DONE)
        c = await submit_one(store, concurrency_key="gpu")
        assert (await claim_one(store)).job_id == b.id
        assert (a.id, (await get(store, c.id)).wait_reason) == (current.job_id, WaitReason.LOCKED)

    async def test_a_higher_priority_takes_the_head_of_the_line(self, store: Store) -> None:
        low = await submit_one(store, concurrency_key="gpu")
        high = await submit_one(store, concurrency_key="gpu", priority=1)
        assert (await get(store, low.id)).wait_reason is WaitReason.LOCKED
        assert (await claim_one(store)).job_id == high.id

    async def test_other_work_passes_a_locked_job(self, store: Store) -> None:
        await submit(store, *[job(concurrency_key="gpu")] * 3)
        free = await submit_one(store)
        assert [each.job.id for each in await claim(store, limit=9)][-1] == free.id

    async def test_every_way_out_passes_the_key_on(self, store: Store, clock: ManualClock) -> None:
        ends: list[Callable[[Claim], Awaitable[object]]] = [
            lambda held: store.end_attempt(held, DONE),
            lambda held: store.end_attempt(held, FAILED),
            lambda held: store.end_attempt(held, retry(3600)),
            lambda held: store.rescue([held.owner]),
        ]
        rows = await submit(store, *[job(concurrency_key="gpu") for _ in range(5)])
        for end, row in zip(ends, rows, strict=False):
            held = await claim_one(store)
            assert held.job_id == row.id
            await end(held)
        assert (await claim_one(store)).job_id == rows[4].id

    async def test_a_cancelled_head_passes_the_key_on(self, store: Store) -> None:
        a, b = await submit(store, *[job(concurrency_key="gpu")] * 2)
        await store.request_cancel(a.id, "ann")
        assert (await get(store, b.id)).wait_reason is WaitReason.QUEUED

    async def test_a_limit_of_two(self, store: Store) -> None:
        await store.set_concurrency_limit("gpu", 2)
        await submit(store, *[job(concurrency_key="gpu") for _ in range(5)])
        held = await claim(store, limit=5)
        assert len(held) == 2
        await store.set_concurrency_limit("gpu", 3)
        assert len(await claim(store, limit=5)) == 1
        await store.set_concurrency_limit("gpu", 1)
        await store.end_attempt(held[0].claim, DONE)
        assert not await claim(store, limit=5)

    async def test_a_retried_job_takes_its_place_in_the_line_again(
        self, store: Store, clock: ManualClock
    ) -> None:
        first, second = await submit(store, *[job(concurrency_key="gpu")] * 2)
        await store.end_attempt(await claim_one(store), retry(10))
        held = await claim_one(store)
        assert held.job_id == second.id
        clock.advance(10)
        assert not await claim(store)
        waiting = await get(store, first.id)
        assert waiting.wait_reason is WaitReason.LOCKED
        await store.end_attempt(held, DONE)
        assert (await claim_one(store)).job_id == first.id


class TestWhy:
    """N12."""

    async def test_queued_says_its_position(self, store: Store) -> None:
        rows = await submit(store, job(), job(priority=1), job(), job(lane="short"))
        positions = []
        for row in rows:
            why = await store.why(row.id)
            assert why is not None
            assert why.reason is WaitReason.QUEUED
            positions.append(why.position)
        assert positions == [2, 1, 3, 1]

    async def test_locked_names_the_holder(self, store: Store) -> None:
        held, a, b = await submit(store, *[job(concurrency_key="gpu")] * 3)
        await claim_one(store)
        for position, row in enumerate((a, b), start=1):
            why = await store.why(row.id)
            assert why is not None
            assert (why.reason, why.position) == (WaitReason.LOCKED, position)
            assert why.holders == (held.id,)
            assert held.id in why.text

    async def test_backoff_and_schedule_say_until_when(self, store: Store) -> None:
        await submit_one(store)
        backoff = await store.end_attempt(await claim_one(store), retry(30))
        assert backoff is not None
        why = await store.why(backoff.id)
        assert why is not None
        assert (why.reason, why.until) == (WaitReason.BACKOFF, NOW + timedelta(seconds=30))
        assert "again" in why.text
        scheduled = await submit_one(store, not_before=NOW + timedelta(hours=1))
        why = await store.why(scheduled.id)
        assert why is not None
        assert (why.reason, why.until) == (WaitReason.SCHEDULED, NOW + timedelta(hours=1))

    async def test_a_job_that_does_not_wait(self, store: Store) -> None:
        row = await submit_one(store)
        current = await claim_one(store)
        why = await store.why(row.id)
        assert why is not None
        assert (why.state, why.reason) == (JobState.RUNNING, None)
        await store.end_attempt(current, DONE)
        why = await store.why(row.id)
        assert why is not None
        assert "succeeded" in why.text
        assert await store.why("0" * 26) is None


class TestPreconditions:
    """J9."""

    TWO = (Precondition(name="a", timeout_s=5.0), Precondition(name="b", arguments_json='{"x":1}'))

    async def test_a_waiting_job_cannot_be_claimed_until_it_is_let_go(
        self, store: Store, clock: ManualClock
    ) -> None:
        row = await submit_one(store, preconditions=self.TWO)
        assert row.wait_reason is WaitReason.PRECONDITION
        assert not await claim(store)
        (waiting,) = await store.waiting()
        assert (waiting.job.id, waiting.preconditions, waiting.since) == (row.id, self.TWO, NOW)
        assert await store.describe_wait(row.id, "the target is down")
        why = await store.why(row.id)
        assert why is not None
        assert "the target is down" in why.text
        clock.advance(5)
        assert await store.preconditions_met(row.id)
        assert await store.waiting() == []
        (claimed,) = await claim(store)
        assert claimed.ready_at == NOW + timedelta(seconds=5)

    async def test_letting_go_twice_or_too_late_changes_nothing(self, store: Store) -> None:
        row = await submit_one(store, preconditions=self.TWO)
        await store.request_cancel(row.id, "ann")
        error = ErrorInfo(type="E", message="m")
        assert not await store.preconditions_met(row.id)
        assert not await store.precondition_failed(row.id, Outcome.FAILED, error)
        assert not await store.describe_wait(row.id, "x")
        assert (await get(store, row.id)).state is JobState.CANCELLED

    async def test_a_failed_condition_fails_the_job_with_its_text(self, store: Store) -> None:
        row = await submit_one(store, preconditions=self.TWO)
        error = ErrorInfo(type="ValueError", message="no such thing")
        assert await store.precondition_failed(row.id, Outcome.FAILED, error)
        ended = await get(store, row.id)
        assert (ended.state, ended.error, ended.attempt) == (JobState.FAILED, error, 0)

    async def test_first_the_time_then_the_conditions_then_the_key(
        self, store: Store, clock: ManualClock
    ) -> None:
        holder = await submit_one(store, concurrency_key="k")
        await claim_one(store)
        row = await submit_one(
            store, preconditions=self.TWO, concurrency_key="k",
            not_before=NOW + timedelta(seconds=9),
        )  # fmt: skip
        seen = [row.wait_reason]
        clock.advance(9)
        await claim(store)
        seen.append((await get(store, row.id)).wait_reason)
        await store.preconditions_met(row.id)
        seen.append((await get(store, row.id)).wait_reason)
        await store.end_attempt(Claim(job_id=holder.id, attempt=1, owner="w1"), DONE)
        seen.append((await get(store, row.id)).wait_reason)
        assert seen == [
            WaitReason.SCHEDULED,
            WaitReason.PRECONDITION,
            WaitReason.LOCKED,
            WaitReason.QUEUED,
        ]

    async def test_a_retry_does_not_wait_for_them_again(
        self, store: Store, clock: ManualClock
    ) -> None:
        row = await submit_one(store, preconditions=self.TWO)
        await store.preconditions_met(row.id)
        await store.end_attempt(await claim_one(store), retry(5))
        clock.advance(5)
        assert (await claim_one(store)).job_id == row.id


class TestLeasesAndPeriods:
    """J19."""

    async def test_a_named_lease_has_one_holder(self, store: Store, clock: ManualClock) -> None:
        assert await store.take_lease("x", "w1", LEASE_S) == "w1"
        assert await store.take_lease("x", "w2", LEASE_S) == "w1"
        assert await store.take_lease("y", "w2", LEASE_S) == "w2"
        clock.advance(LEASE_S - 1)
        assert await store.take_lease("x", "w1", LEASE_S) == "w1"
        clock.advance(LEASE_S - 1)
        assert await store.take_lease("x", "w2", LEASE_S) == "w1"
        clock.advance(1)
        assert await store.take_lease("x", "w2", LEASE_S) == "w2"

    async def test_a_dead_holders_lease_passes_on_at_once(self, store: Store) -> None:
        """Trap 23: killed once, periodic jobs never came back."""
        await store.take_lease("x", "w1", LEASE_S)
        assert await store.take_lease("x", "w2", LEASE_S, dead_owners=["w9"]) == "w1"
        assert await store.take_lease("x", "w2", LEASE_S, dead_owners=["w1"]) == "w2"

    async def test_periods_are_remembered(self, store: Store, open_store: OpenStore) -> None:
        assert await store.last_period("x") is None
        await store.record_period("x", NOW)
        await store.record_period("x", NOW + timedelta(minutes=1))
        assert await (await open_store()).last_period("x") == NOW + timedelta(minutes=1)


class TestRetention:
    """J22."""

    async def _ended(self, store: Store, clock: ManualClock, count: int) -> list[str]:
        ids = []
        for _ in range(count):
            row = await submit_one(store, labels={"a": "b"}, workspace="lab")
            await store.end_attempt(await claim_one(store), DONE)
            ids.append(row.id)
            clock.advance(60)
        return ids

    async def test_by_age(self, store: Store, clock: ManualClock) -> None:
        ids = await self._ended(store, clock, 3)
        rule = RetentionRule(max_age=timedelta(seconds=119))
        assert await store.expired_jobs(rule, 10) == ids[:2]
        assert await store.expired_jobs(rule, 1) == ids[:1]

    async def test_by_count_and_size(self, store: Store, clock: ManualClock) -> None:
        ids = await self._ended(store, clock, 4)
        each = len('{"x": 1}') + len("42")
        assert await store.expired_jobs(RetentionRule(max_jobs=1), 10) == ids[:3]
        assert await store.expired_jobs(RetentionRule(max_bytes=each * 2), 10) == ids[:2]
        assert await store.expired_jobs(RetentionRule(max_jobs=9, max_bytes=10**9), 10) == []
        assert await store.expired_jobs(RetentionRule(), 10) == []

    async def test_by_workspace(self, store: Store, clock: ManualClock) -> None:
        ids = await self._ended(store, clock, 2)
        other = RetentionRule(max_jobs=0, workspace="other")
        assert await store.expired_jobs(other, 10) == []
        assert await store.expired_jobs(RetentionRule(max_jobs=0, workspace="lab"), 10) == ids
        for limits in ({"max_jobs": 0}, {"max_age": timedelta(seconds=1)}):
            beside = RetentionRule(**limits, besides=("other",))
            assert await store.expired_jobs(beside, 10) == ids
            beside = RetentionRule(**limits, besides=("other", "lab"))
            assert await store.expired_jobs(beside, 10) == []

    async def test_nothing_of_a_deleted_job_remains(self, store: Store, clock: ManualClock) -> None:
        key = Idempotency(key="k", fingerprint="f")
        row = await submit_one(store, labels={"a": "b"}, idempotency=key)
        await store.end_attempt(await claim_one(store), DONE)
        assert await store.delete_jobs([row.id, "0" * 26]) == 1
        assert isinstance(await store.find(row.id), NotFound)
        assert await store.payload(row.id) is None
        assert await store.result(row.id) is None
        assert await store.events(row.id) == []
        assert await store.attempts(row.id) == []
        assert (await store.list_jobs(JobQuery(labels={"a": "b"}))).jobs == ()
        assert (await submit_one(store, idempotency=key)).id != row.id

    async def test_a_live_job_is_never_deleted(self, store: Store) -> None:
        running, waiting = await submit(store, job(), job())
        await claim_one(store)
        assert await store.delete_jobs([running.id, waiting.id]) == 0
        assert (await get(store, running.id)).state is JobState.RUNNING


async def test_counts_tell_live_jobs_and_all_that_ever_ended(
    store: Store, clock: ManualClock
) -> None:
    await submit(store, *[job("a") for _ in range(3)], job("b", not_before=NOW + timedelta(1)))
    done = await claim_one(store)
    await store.end_attempt(done, DONE)
    await claim_one(store)
    await store.delete_jobs([done.job_id])
    counts = await store.counts()
    live = {(each.operation, each.state, each.wait_reason): each.jobs for each in counts.live}
    assert live == {
        ("a", JobState.PENDING, WaitReason.QUEUED): 1,
        ("a", JobState.RUNNING, None): 1,
        ("b", JobState.PENDING, WaitReason.SCHEDULED): 1,
    }
    assert [(each.operation, each.outcome, each.jobs) for each in counts.ended] == [
        ("a", Outcome.SUCCEEDED, 1)
    ]


async def test_events_are_numbered_and_read_from_any_point(store: Store) -> None:
    row = await submit_one(store)
    current = await claim_one(store)
    assert await store.add_event(current, "artifact", '{"name":"a"}')
    await store.end_attempt(current, DONE)
    events = await store.events(row.id)
    assert [event.number for event in events] == [1, 2, 3, 4]
    assert (events[2].kind, events[2].attempt, events[2].data_json) == (
        "artifact",
        1,
        '{"name":"a"}',
    )
    assert await store.events(row.id, after=3) == events[3:]
    assert await store.events(row.id, limit=2) == events[:2]


async def test_closing_twice_is_fine_and_a_closed_store_says_so(store: Store) -> None:
    from headway.core.errors import StoreUnavailable

    await store.close()
    await store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.find("0")
