"""All that was seen of a run under fire, as values: what the judgement is passed on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headway.chaos.journal import Line
from headway.chaos.workload import Assignment
from headway.store.jobs import AttemptRow, Event, JobRow


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """An assignment that was posted.

    Attributes:
        job_ids: What the server answered to each post; all the same, if all is well. Empty when no
            post was ever answered.
    """

    assignment: Assignment
    job_ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class StoredJob:
    """A job as the store has it at the end.

    Attributes:
        result: Its result, decoded, of a large text the digest; None when it has none.
        artifacts: The digest of each complete artifact, by attempt and name.
    """

    row: JobRow
    events: tuple[Event, ...]
    attempts: tuple[AttemptRow, ...]
    result: Any = None
    artifacts: Mapping[tuple[int, str], str] = field(default_factory=dict)


@dataclass(kw_only=True)
class Followed:
    """What one follower was given.

    Attributes:
        texts: What it was given of each attempt's log, put together and encoded again.
        leaps: Where the position of a piece was not the one that its length leads to.
        resumed: How often it broke off and came back by position.
        gave_up: Why it ended before the job did, or None.
    """

    texts: Mapping[int, bytes] = field(default_factory=dict)
    leaps: list[str] = field(default_factory=list)
    resumed: int = 0
    gave_up: str | None = None


@dataclass(frozen=True, kw_only=True)
class Pause:
    """A process that was stopped (SIGSTOP), on the host's monotonic clock."""

    pid: int
    role: str
    from_ns: int
    until_ns: int


@dataclass(frozen=True, kw_only=True)
class History:
    """A whole run.

    Attributes:
        accepted: Everything that was posted.
        jobs: Everything in the store, by id.
        journals: What the attempts wrote down, by assignment number.
        shared: What those wrote down that exclude one another.
        logs: Bytes of each attempt's log, by job id and attempt.
        followed: By job id.
        pauses: Who was stopped, and when.
        orphans: Processes that were there after the shutdown, in words.
        leftovers: Files that should not be there, in words.
        complaints: Answers and exits that a healthy server does not give, in words.
    """

    accepted: tuple[Accepted, ...] = ()
    jobs: Mapping[str, StoredJob] = field(default_factory=dict)
    journals: Mapping[int, tuple[Line, ...]] = field(default_factory=dict)
    shared: tuple[Line, ...] = ()
    logs: Mapping[str, Mapping[int, bytes]] = field(default_factory=dict)
    followed: Mapping[str, Followed] = field(default_factory=dict)
    pauses: tuple[Pause, ...] = ()
    orphans: tuple[str, ...] = ()
    leftovers: tuple[str, ...] = ()
    complaints: tuple[str, ...] = ()
