"""The one interface to durable state. SQL lives behind it, and only here.

Every write of an attempt shows its `Claim` and is refused, by a value, when the attempt is no
longer the current one; whoever is refused stops and writes nothing more. Terminal states are
final: every later write is refused. `tests/conformance/test_store.py` is what a store must do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from headway.core.failure import ErrorInfo
from headway.core.states import Outcome
from headway.store.accounts import AccountStore
from headway.store.attempts import AttemptEnd, Claim, ClaimedJob, Rescued
from headway.store.counts import Counts
from headway.store.jobs import (
    Ambiguous,
    AttemptRow,
    CancelResult,
    Event,
    JobPage,
    JobQuery,
    JobRow,
    NotFound,
    Payload,
    Progress,
    RetentionRule,
    StoredResult,
)
from headway.store.limits import LimitStore, QueueFull
from headway.store.submissions import IdempotencyConflict, NewJob, Submitted
from headway.store.waits import Waiting, Why


class Store(Protocol):
    """Durable jobs. All methods may raise `StoreUnavailable`; the same call may succeed later."""

    @property
    def accounts(self) -> AccountStore:
        """Users, workspaces, tokens and the audit log, kept with the jobs."""
        ...

    @property
    def limits(self) -> LimitStore:
        """Limits, weights and locks."""
        ...

    async def open(self) -> None:
        """Bring the schema up to date and connect."""
        ...

    async def close(self) -> None:
        """Finish the writes that were accepted, then disconnect. Closing twice is fine."""
        ...

    # --- clients ---

    async def submit(
        self, jobs: Sequence[NewJob]
    ) -> list[Submitted] | IdempotencyConflict | QueueFull:
        """Store all jobs in one commit, or none of them.

        Returns:
            One answer a job, in order; or the first idempotency key that was used before for
            another request, or the limit on waiting jobs that would be passed: then nothing was
            stored.
        """
        ...

    async def find(
        self, reference: str, workspace: str | None = None
    ) -> JobRow | NotFound | Ambiguous:
        """The job with this id, or the only one whose id starts so.

        Args:
            reference: An id or a prefix of one, as a person typed it.
            workspace: Only this workspace's jobs exist for the caller; None: all.
        """
        ...

    async def list_jobs(self, query: JobQuery) -> JobPage:
        """One page of jobs, newest first."""
        ...

    async def payload(self, job_id: str) -> Payload | None:
        """What the job was asked to do; None when there is no such job."""
        ...

    async def result(self, job_id: str) -> StoredResult | None:
        """The job's result; None when it has none (not succeeded, dropped, or no such job)."""
        ...

    async def events(self, job_id: str, after: int = 0, limit: int = 1000) -> list[Event]:
        """The job's history after event number `after`, oldest first."""
        ...

    async def attempts(self, job_id: str) -> list[AttemptRow]:
        """The job's ended attempts, oldest first."""
        ...

    async def why(self, job_id: str) -> Why | None:
        """Why the job is not running now; None when there is no such job."""
        ...

    async def request_cancel(self, job_id: str, by: str) -> CancelResult:
        """Cancel a waiting job at once; store the intent for a running one."""
        ...

    async def counts(self) -> Counts:
        """Totals for metrics; cheap at any number of ended jobs."""
        ...

    # --- running attempts ---

    async def claim(self, owner: str, lanes: Mapping[str, int], lease_s: float) -> list[ClaimedJob]:
        """Take the next ready jobs: at most `lanes[lane]` of each lane, as `fair_share` chooses.

        Jobs whose `run_at` has come are made ready first. Each claimed job is RUNNING with its
        attempt one higher, under a lease of `lease_s` seconds.
        """
        ...

    async def renew(self, claims: Sequence[Claim], lease_s: float) -> list[Claim]:
        """Prolong the leases; the returned ones were refused and must stop at once."""
        ...

    async def running(self, owner: str) -> list[Claim]:
        """Every attempt that the store believes `owner` is running."""
        ...

    async def cancel_requested(self, owner: str) -> list[Claim]:
        """The owner's attempts whose cancel was asked for."""
        ...

    async def progress(self, claim: Claim, progress: Progress) -> bool:
        """Replace the job's progress; False when refused."""
        ...

    async def add_event(self, claim: Claim, kind: str, data_json: str) -> bool:
        """Add to the job's history; False when refused."""
        ...

    async def end_attempt(self, claim: Claim, end: AttemptEnd) -> JobRow | None:
        """End the attempt as `end` says; None when refused.

        A job whose cancel was asked for and that would run again is cancelled instead.
        """
        ...

    async def rescue(self, dead_owners: Sequence[str]) -> list[Rescued]:
        """End the attempts whose owner is dead or whose lease is over, by the job's policy.

        A retryable job runs again (after its policy's quarantine limit it is quarantined); others
        fail as `worker_lost`; one whose cancel was asked for is cancelled.

        Args:
            dead_owners: Owners that the caller knows to be dead; their leases do not matter.
        """
        ...

    async def owners(self) -> list[str]:
        """The owners of all running attempts."""
        ...

    async def any_lease_over(self) -> bool:
        """Whether `rescue` would find an attempt whose lease is over."""
        ...

    async def next_run_at(self) -> datetime | None:
        """When the next `scheduled` or `backoff` job becomes ready; None: there is none."""
        ...

    async def end_future_backoffs(self) -> int:
        """End each backoff that began later than now, because the wall clock was set back since.

        How long it still has to last is not known; too early is better than hours too late.
        """
        ...

    # --- preconditions ---

    async def waiting(self) -> list[Waiting]:
        """The jobs that wait for preconditions, oldest first."""
        ...

    async def describe_wait(self, job_id: str, detail: str) -> bool:
        """Say in words what the precondition waits for; False when the job waits no more."""
        ...

    async def preconditions_met(self, job_id: str) -> bool:
        """Let the job queue; False when it waits no more."""
        ...

    async def precondition_failed(self, job_id: str, outcome: Outcome, error: ErrorInfo) -> bool:
        """Fail the job; False when it waits no more."""
        ...

    # --- concurrency keys, system jobs, retention ---

    async def set_concurrency_limit(self, key: str, limit: int) -> None:
        """Let `limit` (>= 1) jobs with this key run at a time."""
        ...

    async def take_lease(
        self, name: str, owner: str, lease_s: float, dead_owners: Sequence[str] = ()
    ) -> str:
        """Take or renew a named lease when it is free, over, one's own, or a dead owner's.

        Returns:
            Who has it now: `owner` when it was taken.
        """
        ...

    async def record_period(self, name: str, due: datetime) -> None:
        """Record that the system job `name` has run for its due time."""
        ...

    async def last_period(self, name: str) -> datetime | None:
        """The latest `due` for which the system job `name` ran."""
        ...

    async def expired_jobs(self, rule: RetentionRule, limit: int) -> list[str]:
        """Ids of ended jobs that `rule` lets go, oldest first."""
        ...

    async def delete_jobs(self, job_ids: Sequence[str]) -> int:
        """Remove ended jobs with all that the store keeps of them; others are left alone.

        Returns:
            How many were removed.
        """
        ...
