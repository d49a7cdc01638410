"""The job state machine against a simple model: any operations, in any order, with restarts."""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
)

from headway.core.clock import ManualClock
from headway.core.retry import RetryPolicy
from headway.core.statedir import StateDir
from headway.core.states import JobState, Outcome, WaitReason, is_legal
from headway.store.attempts import AttemptEnd, Claim, Finish, Release, RetryLater
from headway.store.jobs import CancelResult, JobQuery, Progress, StoredResult
from headway.store.sqlite.store import SqliteStore
from headway.store.submissions import NewJob

T = TypeVar("T")

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
LEASE_S = 10.0
OWNERS = ("w1", "w2")
KEYS = (None, None, "gpu", "disk")
POLICIES = (
    RetryPolicy(),
    RetryPolicy(max_attempts=2, retryable=True, jitter=0.0),
    RetryPolicy(max_attempts=9, retryable=True, quarantine_after=2, jitter=0.0),
)


@cache
def migrated_database() -> bytes:
    """A fresh database's bytes: migrating anew for each of hundreds of examples is slow."""
    with tempfile.TemporaryDirectory() as directory:
        state_dir = StateDir(Path(directory))

        async def make() -> None:
            store = SqliteStore(state_dir, ManualClock(NOW), random.Random(1))
            await store.open()
            await store.close()

        asyncio.run(make())
        return state_dir.database.read_bytes()


@dataclass
class ModelJob:
    """What the rules of DESIGN section 3 say about one job."""

    sequence: int
    id: str
    priority: int
    key: str | None
    policy: RetryPolicy
    state: JobState = JobState.PENDING
    run_at: datetime | None = None
    attempt: int = 0
    released: int = 0
    crashes: int = 0
    owner: str | None = None
    lease_until: datetime | None = None
    cancel_requested: bool = False
    outcome: Outcome | None = None
    history: list[JobState] = field(default_factory=lambda: [JobState.PENDING])

    @property
    def rank(self) -> tuple[int, int]:
        return (-self.priority, self.sequence)

    def move(self, state: JobState) -> None:
        if state is not self.state:
            assert is_legal(self.state, state), f"the model made {self.state} -> {state}"
            self.history.append(state)
        self.state = state

    def end(self, outcome: Outcome, state: JobState) -> None:
        self.move(state)
        self.outcome, self.owner, self.run_at = outcome, None, None

    def requeue(self, run_at: datetime | None) -> None:
        if self.cancel_requested:
            self.end(Outcome.CANCELLED, JobState.CANCELLED)
            return
        self.move(JobState.PENDING)
        self.owner, self.run_at = None, run_at

    def lose(self, now: datetime) -> None:
        """Its owner died or went silent."""
        self.crashes += 1
        counted = self.attempt - self.released
        if not self.policy.retryable:
            self._end_lost(Outcome.WORKER_LOST)
        elif self.crashes >= self.policy.quarantine_after:
            self._end_lost(Outcome.QUARANTINED)
        elif counted >= self.policy.max_attempts:
            self._end_lost(Outcome.WORKER_LOST)
        else:
            delay_s = 0.0 if self.crashes == 1 else 2.0 ** (self.crashes - 2)
            self.requeue(now + timedelta(seconds=delay_s) if delay_s else None)

    def _end_lost(self, outcome: Outcome) -> None:
        if self.cancel_requested:
            self.end(Outcome.CANCELLED, JobState.CANCELLED)
        else:
            self.end(outcome, JobState.FAILED)


class StoreMachine(RuleBasedStateMachine):
    """Drives a store and the model side by side."""

    jobs = Bundle("jobs")
    claims = Bundle("claims")

    @initialize()
    def open(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.directory = Path(tempfile.mkdtemp())
        self.clock = ManualClock(NOW, monotonic_ns=10**15)
        self.model: dict[str, ModelJob] = {}
        StateDir(self.directory).create()
        StateDir(self.directory).database.write_bytes(migrated_database())
        self._open()

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.do(self.store.close())
            self.loop.close()
            shutil.rmtree(self.directory)

    def do(self, call: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(call)

    def _open(self) -> None:
        self.store = SqliteStore(StateDir(self.directory), self.clock, random.Random(1))
        self.do(self.store.open())

    # --- rules ---

    @rule(
        target=jobs,
        priority=st.integers(0, 2),
        key=st.sampled_from(KEYS),
        policy=st.sampled_from(POLICIES),
        delay_s=st.sampled_from([0, 0, 0, 5]),
    )
    def submit(self, priority: int, key: str | None, policy: RetryPolicy, delay_s: int) -> str:
        run_at = self.clock.now() + timedelta(seconds=delay_s) if delay_s else None
        new = NewJob(
            operation="op", lane="long", input_json="{}", priority=priority, concurrency_key=key,
            retry=policy, not_before=run_at,
        )  # fmt: skip
        answer = self.do(self.store.submit([new]))
        assert isinstance(answer, list)
        row = answer[0].job
        self.model[row.id] = ModelJob(row.sequence, row.id, priority, key, policy, run_at=run_at)
        return row.id

    @rule(target=claims, owner=st.sampled_from(OWNERS), limit=st.integers(1, 4))
    def claim(self, owner: str, limit: int) -> Any:
        expected = self._ready()[:limit]
        claimed = self.do(self.store.claim(owner, {"long": limit}, LEASE_S))
        assert [each.job.id for each in claimed] == [job.id for job in expected]
        for job in expected:
            job.move(JobState.RUNNING)
            job.attempt += 1
            job.owner, job.run_at = owner, None
            job.lease_until = self.clock.now() + timedelta(seconds=LEASE_S)
        assert [each.claim.attempt for each in claimed] == [job.attempt for job in expected]
        return multiple(*(each.claim for each in claimed))

    @rule(
        claim=claims,
        outcome=st.sampled_from([Outcome.SUCCEEDED, Outcome.FAILED, Outcome.CANCELLED]),
    )
    def finish(self, claim: Claim, outcome: Outcome) -> None:
        result = StoredResult(json="1") if outcome is Outcome.SUCCEEDED else None
        job = self._end(claim, Finish(outcome=outcome, result=result))
        if job is not None:
            states = {
                Outcome.SUCCEEDED: JobState.SUCCEEDED,
                Outcome.FAILED: JobState.FAILED,
                Outcome.CANCELLED: JobState.CANCELLED,
            }
            job.end(outcome, states[outcome])

    @rule(claim=claims, delay_s=st.sampled_from([0.0, 3.0]), crashed=st.booleans())
    def retry(self, claim: Claim, delay_s: float, crashed: bool) -> None:
        end = RetryLater(outcome=Outcome.FAILED, delay_s=delay_s, reason="r", crashed=crashed)
        job = self._end(claim, end)
        if job is not None:
            job.requeue(self.clock.now() + timedelta(seconds=delay_s) if delay_s else None)
            job.crashes += crashed

    @rule(claim=claims)
    def release(self, claim: Claim) -> None:
        job = self._end(claim, Release(reason="drain"))
        if job is not None:
            cancelled = job.cancel_requested
            job.requeue(None)
            job.released += not cancelled

    @rule(claim=claims)
    def write_progress(self, claim: Claim) -> None:
        written = self.do(self.store.progress(claim, Progress(fraction=0.5)))
        assert written == (self._current(claim) is not None)

    @rule(claim=claims)
    def renew(self, claim: Claim) -> None:
        refused = self.do(self.store.renew([claim], LEASE_S))
        job = self._current(claim)
        assert refused == ([] if job else [claim])
        if job is not None:
            job.lease_until = self.clock.now() + timedelta(seconds=LEASE_S)

    @rule(job_id=jobs)
    def cancel(self, job_id: str) -> None:
        job = self.model[job_id]
        result = self.do(self.store.request_cancel(job_id, "ann"))
        if job.state.is_terminal:
            assert result is CancelResult.ALREADY_ENDED
        elif job.state is JobState.RUNNING:
            assert result is CancelResult.REQUESTED
            job.cancel_requested = True
        else:
            assert result is CancelResult.CANCELLED
            job.end(Outcome.CANCELLED, JobState.CANCELLED)

    @rule(seconds=st.sampled_from([1.0, 4.0, LEASE_S]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(dead=st.sampled_from([(), ("w1",), ("w1", "w2")]))
    def rescue(self, dead: tuple[str, ...]) -> None:
        now = self.clock.now()
        lost = [
            job
            for job in self.model.values()
            if job.state is JobState.RUNNING
            and (job.owner in dead or (job.lease_until is not None and job.lease_until <= now))
        ]
        expected = {job.id: (job.attempt, job.owner) for job in lost}
        rescued = self.do(self.store.rescue(dead))
        found = {each.claim.job_id: (each.claim.attempt, each.claim.owner) for each in rescued}
        assert found == expected
        for job in lost:
            job.lose(now)

    @rule()
    def restart(self) -> None:
        self.do(self.store.close())
        self._open()

    # --- what must hold after each step ---

    @invariant()
    def the_store_is_as_the_model_says(self) -> None:
        if not hasattr(self, "store"):
            return
        rows = {row.id: row for row in self.do(self.store.list_jobs(JobQuery(limit=1000))).jobs}
        assert rows.keys() == self.model.keys()
        for job in self.model.values():
            row = rows[job.id]
            assert (row.state, row.attempt, row.owner) == (job.state, job.attempt, job.owner)
            assert (row.outcome, row.crashes) == (job.outcome, job.crashes)
            assert row.released == job.released
            assert (row.wait_reason is None) == (job.state is not JobState.PENDING)

    @invariant()
    def a_key_is_held_by_one(self) -> None:
        held = [
            job.key
            for job in getattr(self, "model", {}).values()
            if job.state is JobState.RUNNING and job.key is not None
        ]
        assert len(held) == len(set(held))

    @invariant()
    def every_waiting_job_says_why(self) -> None:
        for job in getattr(self, "model", {}).values():
            if job.state is JobState.PENDING:
                why = self.do(self.store.why(job.id))
                assert why is not None
                assert why.reason is not None
                if why.reason in (WaitReason.BACKOFF, WaitReason.SCHEDULED):
                    assert why.until == job.run_at
                else:
                    assert why.position is not None

    # --- the model's own rules ---

    def _ready(self) -> list[ModelJob]:
        """Jobs that may be claimed now, in queue order: of each key, only the head of its line."""
        now = self.clock.now()
        waiting = sorted(
            (
                job
                for job in self.model.values()
                if job.state is JobState.PENDING and (job.run_at is None or job.run_at <= now)
            ),
            key=lambda job: job.rank,
        )
        taken = {job.key for job in self.model.values() if job.state is JobState.RUNNING}
        ready = []
        for job in waiting:
            if job.key is None or job.key not in taken:
                ready.append(job)
                taken |= {job.key} - {None}
        return ready

    def _current(self, claim: Claim) -> ModelJob | None:
        job = self.model[claim.job_id]
        current = (job.state, job.attempt, job.owner)
        return job if current == (JobState.RUNNING, claim.attempt, claim.owner) else None

    def _end(self, claim: Claim, end: AttemptEnd) -> ModelJob | None:
        row = self.do(self.store.end_attempt(claim, end))
        job = self._current(claim)
        assert (row is None) == (job is None), "fencing and the model disagree"
        return job


StoreMachine.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestSqliteStateMachine = StoreMachine.TestCase
