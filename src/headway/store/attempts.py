"""The right to run an attempt, and how an attempt ends."""

from __future__ import annotations

from datetime import datetime

import msgspec

from headway.core.failure import ErrorInfo
from headway.core.states import JobState, Outcome
from headway.store.jobs import JobRow, Payload, StoredResult, Usage


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


class Rescued(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt whose owner died or lost its lease, and what became of its job."""

    claim: Claim
    state: JobState
    reason: str
