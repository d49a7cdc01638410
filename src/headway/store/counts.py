"""Totals of jobs, for metrics."""

from __future__ import annotations

import msgspec

from headway.core.states import JobState, Outcome, WaitReason


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
