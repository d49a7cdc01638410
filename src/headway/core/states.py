"""The job state machine: states, why a job waits, how it ended, and which moves are legal.

`ARCHITECTURE.md` draws it. Stores enforce it; nothing else writes a state.
"""

from __future__ import annotations

from enum import StrEnum


class JobState(StrEnum):
    """Where a job is in its life."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def is_terminal(self) -> bool:
        """True when nothing can change this job any more."""
        return self in _TERMINAL


class Lane(StrEnum):
    """Where attempts run."""

    LONG = "long"
    """A fresh process for each attempt."""
    SHORT = "short"
    """Warm processes, reused."""
    INLINE = "inline"
    """The API process: its event loop and a thread pool."""


class WaitReason(StrEnum):
    """Why a PENDING job does not run yet."""

    QUEUED = "queued"
    PRECONDITION = "precondition"
    BACKOFF = "backoff"
    SCHEDULED = "scheduled"
    LOCKED = "locked"
    """Its concurrency key is held by another job."""


class Outcome(StrEnum):
    """How a job, or one attempt of it, ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    WORKER_LOST = "worker_lost"
    QUARANTINED = "quarantined"


_TERMINAL = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})

TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    # A precondition that fails, or quarantine found at rescue, ends a job that does not run.
    JobState.PENDING: frozenset({JobState.RUNNING, JobState.FAILED, JobState.CANCELLED}),
    # Back to PENDING: retry, drain, lease lost.
    JobState.RUNNING: frozenset(
        {JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.PENDING}
    ),
    JobState.SUCCEEDED: frozenset(),
    JobState.FAILED: frozenset(),
    JobState.CANCELLED: frozenset(),
}


def is_legal(before: JobState, after: JobState) -> bool:
    """Whether a job may go from `before` to `after`."""
    return after in TRANSITIONS[before]


def state_of(outcome: Outcome) -> JobState:
    """The terminal state that belongs to an outcome."""
    if outcome is Outcome.SUCCEEDED:
        return JobState.SUCCEEDED
    if outcome is Outcome.CANCELLED:
        return JobState.CANCELLED
    return JobState.FAILED
