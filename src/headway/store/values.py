"""What goes into a store and comes out of it: plain, frozen values.

Times are UTC with their zone, to the microsecond. JSON travels as text that the store never looks
into, so that what was validated at the border is what the job gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from headway.core.failure import ErrorInfo
from headway.core.retry import RetryPolicy
from headway.core.states import JobState, Outcome, WaitReason

# --- submitting ---------------------------------------------------------------------------------


class Idempotency(msgspec.Struct, frozen=True, kw_only=True):
    """A client's promise that equal keys mean the same submission.

    Attributes:
        key: The client's key, unique within a workspace.
        fingerprint: A hash of the request as it was sent, so that a key used twice for different
            requests is noticed.
    """

    key: str
    fingerprint: str


class Precondition(msgspec.Struct, frozen=True, kw_only=True):
    """Something a job waits for outside the lanes.

    Attributes:
        name: A built-in condition or one registered by the operations' author.
        arguments_json: Its arguments as a JSON object.
        timeout_s: The job fails when this long has passed since the wait began; None: no limit.
    """

    name: str
    arguments_json: str = "{}"
    timeout_s: float | None = None


class NewJob(msgspec.Struct, frozen=True, kw_only=True):
    """A submission, already validated.

    Attributes:
        lane: Where the operation runs: `long`, `short` or `inline`.
        priority: Higher runs first; equal priorities run in order of submission.
        not_before: The job is `scheduled` until then.
        timeout_s: Limit for each attempt's running time.
        concurrency_key: Jobs with one key run at most its limit at a time (by default 1).
        keep_result: False drops the result (`ignore_result`).
        env: Environment overrides, already checked against the allow-list.
        config_json: Configuration overlay, already validated.
        secrets: Environment variables whose values are secrets: the secret's name by variable.
        secret_names: Secrets that the operation asks for by name.
        target: Name of the registered target that the job may measure; None: not restricted.
        retry_of: The ended job that this one does again; an ended job itself never changes.
    """

    operation: str
    lane: str
    input_json: str
    priority: int = 0
    not_before: datetime | None = None
    timeout_s: float | None = None
    concurrency_key: str | None = None
    preconditions: tuple[Precondition, ...] = ()
    labels: Mapping[str, str] = {}
    env: Mapping[str, str] = {}
    config_json: str = "{}"
    secrets: Mapping[str, str] = {}
    secret_names: tuple[str, ...] = ()
    target: str | None = None
    keep_result: bool = True
    memory_limit_bytes: int | None = None
    grace_s: float | None = None
    retry: RetryPolicy = RetryPolicy()
    created_by: str = "local"
    workspace: str = "default"
    retry_of: str | None = None
    idempotency: Idempotency | None = None


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """The job of a submission.

    Attributes:
        created: False when an earlier submission with the same idempotency key made it.
    """

    job: JobRow
    created: bool


class IdempotencyConflict(msgspec.Struct, frozen=True, kw_only=True):
    """The key was used before for another request; nothing was stored."""

    key: str
    job_id: str


# --- reading ------------------------------------------------------------------------------------


class Progress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The last thing a job told of its progress.

    Attributes:
        fraction: Done part, 0..1.
        numbers: Whatever the job counts.
    """

    fraction: float | None = None
    message: str | None = None
    numbers: Mapping[str, float] = {}


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it is now, without its payload (`Payload`) and result (`StoredResult`).

    Attributes:
        sequence: The order in which the store took the jobs in; the cursor of lists.
        attempt: The number of the current or last attempt, 0 before the first.
        released: Attempts that were given back by a drain and do not count.
        crashes: Attempts that took their process down.
        wait_reason, wait_detail: Why a PENDING job waits, and in words for a person.
        run_at: When a `scheduled` or `backoff` job may run.
        owner: The process that runs it.
        outcome, error: How it ended; while it is retried, the last attempt's error.
        lock_name: What it must hold to run: the lock of its concurrency key, or else the key.
    """

    id: str
    sequence: int
    operation: str
    lane: str
    workspace: str
    created_by: str
    state: JobState
    priority: int
    attempt: int
    released: int
    crashes: int
    created_at: datetime
    wait_reason: WaitReason | None = None
    wait_detail: str | None = None
    run_at: datetime | None = None
    concurrency_key: str | None = None
    timeout_s: float | None = None
    labels: Mapping[str, str] = {}
    cancel_requested_at: datetime | None = None
    owner: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    progress: Progress | None = None
    outcome: Outcome | None = None
    error: ErrorInfo | None = None
    retry_of: str | None = None
    lock_name: str | None = None


class Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a job was asked to do: all that does not change after submission."""

    input_json: str
    env: Mapping[str, str] = {}
    config_json: str = "{}"
    preconditions: tuple[Precondition, ...] = ()
    secrets: Mapping[str, str] = {}
    secret_names: tuple[str, ...] = ()
    target: str | None = None
    keep_result: bool = True
    memory_limit_bytes: int | None = None
    grace_s: float | None = None
    retry: RetryPolicy = RetryPolicy()


def submission_again(job: JobRow, payload: Payload, created_by: str) -> NewJob:
    """A submission that does an ended job's work once more, now."""
    return NewJob(
        operation=job.operation,
        lane=job.lane,
        input_json=payload.input_json,
        priority=job.priority,
        timeout_s=job.timeout_s,
        concurrency_key=job.concurrency_key,
        labels=job.labels,
        env=payload.env,
        config_json=payload.config_json,
        secrets=payload.secrets,
        secret_names=payload.secret_names,
        target=payload.target,
        keep_result=payload.keep_result,
        memory_limit_bytes=payload.memory_limit_bytes,
        grace_s=payload.grace_s,
        retry=payload.retry,
        created_by=created_by,
        workspace=job.workspace,
        retry_of=job.id,
    )


class StoredResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a job that succeeded.

    Attributes:
        json: The result, when it is kept in the store.
        file: Its path under the state directory, when it was too large for that.
    """

    json: str | None = None
    file: str | None = None


class NotFound(msgspec.Struct, frozen=True, kw_only=True):
    """No job has this id or prefix."""

    reference: str


class Ambiguous(msgspec.Struct, frozen=True, kw_only=True):
    """More than one job's id starts so.

    Attributes:
        examples: A few of them.
    """

    reference: str
    examples: tuple[str, ...]


class JobQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs to list, newest first.

    Attributes:
        labels: All of them must match.
        before: The cursor of the page before (`JobPage.cursor`).
        limit: Rows on a page, 1..1000.
    """

    states: tuple[JobState, ...] = ()
    operation: str | None = None
    workspace: str | None = None
    created_by: str | None = None
    labels: Mapping[str, str] = {}
    before: int | None = None
    limit: int = 100


class JobPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a list.

    Attributes:
        cursor: Pass it as `JobQuery.before` for the next page; None on the last.
    """

    jobs: tuple[JobRow, ...]
    cursor: int | None


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a job's history.

    Attributes:
        number: Ascends from 1 within the job.
        attempt: The attempt it belongs to, 0 when to none.
        data_json: Details as a JSON object.
    """

    number: int
    at: datetime
    kind: str
    attempt: int = 0
    data_json: str = "{}"


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    """One ended attempt.

    Attributes:
        outcome: None for an attempt that was given back (drained).
        usage: What it used, None when nobody was there to measure.
    """

    attempt: int
    owner: str
    started_at: datetime
    ended_at: datetime
    outcome: Outcome | None = None
    error: ErrorInfo | None = None
    usage: Usage | None = None


class HoldRule(StrEnum):
    """The rule that holds a waiting job."""

    TURN = "turn"
    """It may run and has its place in the lane; those before it go first."""
    WORKSPACE_LIMIT = "workspace_limit"
    """Its workspace runs as many jobs as it may."""
    USER_LIMIT = "user_limit"
    """Its user runs as many jobs in the workspace as it may."""
    LOCK = "lock"
    """Others hold the lock that it needs, or are before it in the lock's line."""
    SCHEDULED = "scheduled"
    BACKOFF = "backoff"
    PRECONDITION = "precondition"


class RunningJob(msgspec.Struct, frozen=True, kw_only=True):
    """A running job that another waits for.

    Attributes:
        id: None when it belongs to another workspace, whose jobs are nobody's business here.
        operation: What it does; for estimates, not to be shown when `id` is None.
    """

    id: str | None
    operation: str
    started_at: datetime
    fraction: float | None = None


class Ahead(msgspec.Struct, frozen=True, kw_only=True):
    """What must happen before a waiting job starts, as far as it can be foretold.

    Attributes:
        running: Those of whom one must end first.
        operations: What the jobs do that start before it, in their order.
        places: How many may run at a time where it waits; None: as many as run now.
    """

    running: tuple[RunningJob, ...] = ()
    operations: tuple[str, ...] = ()
    places: int | None = None


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job is not running, exactly.

    Attributes:
        rule: The rule that holds a PENDING job.
        position: 1 is the next; among the ready jobs of its workspace in its lane (`turn` and the
            limits) or in the lock's line (`lock`); None where there is no order.
        lane_position: For `turn`: 1 is the next that its lane takes; None: too far to foretell.
        lock: The lock that it needs, if any.
        holders: Ids of the jobs that hold the lock, as far as they are of the same workspace.
        until: When the wait ends by itself.
        text: All of it in one sentence.
        ahead: For estimates; None where none can be made.
    """

    state: JobState
    reason: WaitReason | None
    text: str
    rule: HoldRule | None = None
    position: int | None = None
    lane_position: int | None = None
    lock: str | None = None
    holders: tuple[str, ...] = ()
    until: datetime | None = None
    ahead: Ahead | None = None


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """How many live jobs of an operation are in a state."""

    operation: str
    lane: str
    state: JobState
    wait_reason: WaitReason | None
    jobs: int


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs of an operation ended so, since the store was made."""

    operation: str
    outcome: Outcome
    jobs: int


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Totals for metrics."""

    live: tuple[Count, ...]
    ended: tuple[Ended, ...]


# --- running ------------------------------------------------------------------------------------


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """The right to run one attempt; every write of the attempt shows it."""

    job_id: str
    attempt: int
    owner: str


class ClaimedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that was just claimed, with all that an attempt needs.

    Attributes:
        lease_until_ns: When the lease ends on this host's monotonic clock. Past it, without a
            renewal, another worker may run the job: write nothing.
        ready_at: When it began to wait in the queue for this attempt; queue wait counts from it.
    """

    claim: Claim
    job: JobRow
    payload: Payload
    lease_until_ns: int
    ready_at: datetime


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an attempt used, over its whole process tree.

    Attributes:
        timeline: Phase name to UTC time in seconds since the epoch (`claimed`, `forked`, …).
    """

    peak_rss_bytes: int | None = None
    cpu_s: float | None = None
    timeline: Mapping[str, float] = {}


class Finish(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a job: its attempt's outcome is the job's.

    Attributes:
        crashed: The attempt took its process down.
        kept_bytes: Size of the files kept of the job (logs, artifacts), for retention by size.
    """

    outcome: Outcome
    result: StoredResult | None = None
    error: ErrorInfo | None = None
    usage: Usage | None = None
    crashed: bool = False
    kept_bytes: int = 0


class RetryLater(msgspec.Struct, frozen=True, kw_only=True):
    """The attempt did not succeed and the job runs again after a delay.

    Attributes:
        outcome: How this attempt ended.
        reason: Why it is retried, for a person.
        crashed: The attempt took its process down; counts towards quarantine.
    """

    outcome: Outcome
    delay_s: float
    reason: str
    error: ErrorInfo | None = None
    usage: Usage | None = None
    crashed: bool = False
    kept_bytes: int = 0


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """The attempt is given back unfinished; it does not count, and the job is queued again."""

    reason: str
    usage: Usage | None = None
    kept_bytes: int = 0


AttemptEnd = Finish | RetryLater | Release
"""What an attempt's end does to its job."""


class CancelResult(StrEnum):
    """What asking for a cancel did."""

    CANCELLED = "cancelled"
    """It did not run and is cancelled now."""
    REQUESTED = "requested"
    """It runs; the intent is stored and its worker must be rung."""
    ALREADY_ENDED = "already_ended"
    NOT_FOUND = "not_found"


class Rescued(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt whose owner died or lost its lease, and what became of its job."""

    claim: Claim
    state: JobState
    reason: str


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A job that waits for its preconditions.

    Attributes:
        since: When the wait began, for timeouts that survive a restart.
    """

    job: JobRow
    preconditions: tuple[Precondition, ...]
    since: datetime


class RetentionRule(msgspec.Struct, frozen=True, kw_only=True):
    """Which ended jobs may go; None: no limit of this kind.

    Attributes:
        max_age: Ended longer ago than this.
        max_jobs: Only so many ended jobs are kept, the newest.
        max_bytes: Only so much payload and result of ended jobs is kept, the newest.
        workspace: Only this workspace's.
        besides: Not of these workspaces.
    """

    max_age: timedelta | None = None
    max_jobs: int | None = None
    max_bytes: int | None = None
    workspace: str | None = None
    besides: tuple[str, ...] = ()
