"""What a job that does not run waits for, exactly, and what must happen first."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from headway.core.states import JobState, WaitReason
from headway.store.jobs import JobRow, Precondition


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


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A job that waits for its preconditions.

    Attributes:
        since: When the wait began, for timeouts that survive a restart.
    """

    job: JobRow
    preconditions: tuple[Precondition, ...]
    since: datetime
