"""The kinds of events in a job's history."""

from __future__ import annotations

from enum import StrEnum


class EventKind(StrEnum):
    """What the store itself writes; dispatch adds its own (a kill's report, for example)."""

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
