"""The kinds of events in a job's history."""

from __future__ import annotations

from enum import StrEnum


class EventKind(StrEnum):
    """What the store itself writes, and at the end what attempts add."""

    SUBMITTED = "submitted"
    READY = "ready"
    """Its time came, or its preconditions were met."""
    CLAIMED = "claimed"
    RETRY = "retry"
    RELEASED = "released"
    """Given back by a drain; the attempt does not count."""
    RESCUED = "rescued"
    """Its owner died or lost the lease."""
    CANCEL_REQUESTED = "cancel_requested"
    ENDED = "ended"
    ARTIFACT = "artifact"
    """A file is complete. One that has no such event, because it was refused, does not exist."""
    KILLED = "killed"
    """How its processes were ended."""
