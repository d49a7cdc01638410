"""How many jobs a workspace, and each user in it, may run and have waiting; and its weight.

A limit that is set for one workspace or user comes before one that is set for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec

EVERY = "*"
"""In place of a name: each workspace, or each user of a workspace, that has no limit of its own."""
WHOLE = ""
"""In place of a user's name: the workspace as a whole."""

MAX_WEIGHT = 1000.0
MIN_WEIGHT = 0.001
MAX_JOBS = 10**9


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """What an administrator has set. None: nothing is said, and what is less particular holds.

    Attributes:
        workspace: A workspace, or `EVERY`.
        user: A user in it, `EVERY`, or `WHOLE` for the workspace itself.
        max_running: Jobs that may run at a time; 0 lets none start.
        max_queued: Jobs that may wait, for whatever reason; more are refused when submitted.
        weight: The workspace's share of a lane or lock in proportion to others' (by default 1).
    """

    workspace: str
    user: str = WHOLE
    max_running: int | None = None
    max_queued: int | None = None
    weight: float | None = None


class LimitBook:
    """All limits, looked up from the particular to the general.

    Args:
        limits: Each with another (workspace, user).
    """

    def __init__(self, limits: Iterable[Limit] = ()) -> None:
        self._limits = {(each.workspace, each.user): each for each in limits}
        self.limits_running = any(each.max_running is not None for each in self._limits.values())
        self.limits_queued = any(each.max_queued is not None for each in self._limits.values())

    def all(self) -> list[Limit]:
        """Every limit that was set."""
        return list(self._limits.values())

    def max_running(self, workspace: str, user: str = WHOLE) -> int | None:
        """Jobs that may run at a time; None: any number."""
        for limit in self._from_particular(workspace, user):
            if limit.max_running is not None:
                return limit.max_running
        return None

    def max_queued(self, workspace: str, user: str = WHOLE) -> int | None:
        """Jobs that may wait; None: any number."""
        for limit in self._from_particular(workspace, user):
            if limit.max_queued is not None:
                return limit.max_queued
        return None

    def weight(self, workspace: str) -> float:
        """The share of the workspace in proportion to others'."""
        for limit in self._from_particular(workspace, WHOLE):
            if limit.weight is not None:
                return limit.weight
        return 1.0

    def _from_particular(self, workspace: str, user: str) -> Iterable[Limit]:
        if not self._limits:
            return ()
        keys: list[tuple[str, str]] = [(workspace, user)]
        if user != WHOLE:
            keys.append((workspace, EVERY))
        keys.append((EVERY, WHOLE if user == WHOLE else EVERY))
        return [self._limits[key] for key in keys if key in self._limits]


class QueueLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What may wait in the whole store, of all workspaces together. None: any number.

    Attributes:
        jobs: Jobs, for whatever reason they wait.
        size_bytes: What was submitted with them: a few thousand large inputs fill a disk too.
    """

    jobs: int | None = None
    size_bytes: int | None = None


class QueueFull(msgspec.Struct, frozen=True, kw_only=True):
    """A submission would leave more waiting than may; nothing was stored.

    Attributes:
        workspace: Whose limit it is; None: the store's, for all workspaces together.
        user: Likewise; `WHOLE`: the workspace's.
        limit: How many may wait.
        waiting: How many wait already.
        submitted: How many of the submission count against the limit.
        unit: What is counted: `jobs` or `bytes`.
    """

    workspace: str | None
    user: str
    limit: int
    waiting: int
    submitted: int
    unit: str = "jobs"


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """How much a user has in a workspace now."""

    workspace: str
    user: str
    running: int
    waiting: int


class Lock(msgspec.Struct, frozen=True, kw_only=True):
    """A lock that an administrator has set up.

    Attributes:
        max_running: Jobs that may hold it at a time.
        members: Concurrency keys whose jobs need it; a key without a lock is a lock of its own.
    """

    name: str
    max_running: int = 1
    members: tuple[str, ...] = ()


class LimitStore(Protocol):
    """Limits and locks, kept beside the jobs. What is changed holds from the next claim on."""

    async def all(self) -> list[Limit]:
        """Every limit that was set."""
        ...

    async def set(self, limit: Limit) -> None:
        """Set or replace the limit of its workspace and user; one that says nothing is removed.

        Jobs that run already go on, and jobs that wait already stay.
        """
        ...

    async def use(self, workspace: str | None = None) -> list[Use]:
        """Who runs and waits how much, in one workspace or (None) in all."""
        ...

    async def locks(self) -> list[Lock]:
        """Every lock that was set up."""
        ...

    async def set_lock(self, lock: Lock) -> None:
        """Set a lock up, or change it; jobs that wait or run follow their keys at once."""
        ...

    async def remove_lock(self, name: str) -> bool:
        """Make its members locks of their own again, with one place each; False: there is none."""
        ...
