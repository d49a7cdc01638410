"""A job as the store keeps it: its row, payload, result and history, and how to list them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from headway.core.failure import ErrorInfo
from headway.core.retry import RetryPolicy
from headway.core.states import JobState, Outcome, WaitReason


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


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an attempt used, over its whole process tree.

    Attributes:
        timeline: Phase name to UTC time in seconds since the epoch (`claimed`, `forked`, …).
    """

    peak_rss_bytes: int | None = None
    cpu_s: float | None = None
    timeline: Mapping[str, float] = {}


class CancelResult(StrEnum):
    """What asking for a cancel did."""

    CANCELLED = "cancelled"
    """It did not run and is cancelled now."""
    REQUESTED = "requested"
    """It runs; the intent is stored and its worker must be rung."""
    ALREADY_ENDED = "already_ended"
    NOT_FOUND = "not_found"


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
