"""One attempt as values: what is to run, how it ended, what it used, how its tree was killed.

Everything here is plain data. The dispatcher builds an `AttemptPlan`, the supervisor answers with
an `AttemptResult`; no ending is an exception.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from headway.core.failure import ErrorInfo
from headway.core.states import Lane, Outcome
from headway.jobs.artifacts import Artifact
from headway.jobs.secrets import NO_SECRETS, SecretValues
from headway.jobs.target import TargetGrant

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """What one attempt may use. `None` means no limit.

    Attributes:
        timeout_s: Seconds the function may run before the tree is stopped.
        grace_s: Seconds between SIGTERM and the death of the whole tree.
        memory_bytes: Resident memory of the whole tree.
        log_bytes: Size at which the log is cut, with a mark.
        result_bytes: Largest JSON result that is kept. Clients hold one whole in their memory.
        artifact_bytes: Largest single artifact.
    """

    timeout_s: float | None = None
    grace_s: float = 10.0
    memory_bytes: int | None = None
    log_bytes: int = 1024 * MIB
    result_bytes: int = 64 * MIB
    artifact_bytes: int = 4096 * MIB


@dataclass(frozen=True, slots=True)
class AttemptPlan:
    """Everything that a process needs to run one attempt.

    Attributes:
        request: The job's input as JSON text; the child validates it again.
        env: Overrides that `EnvironmentPolicy.check` has accepted.
        config: The job's configuration overlay, a JSON object.
        secrets: Values that only this attempt gets; taken out of what it says.
        target: The registered target that it may measure; None: not restricted to one.
        keep_result: False when nobody wants the result; it is validated, then dropped.
        claimed_ns: When the dispatcher claimed the job (host monotonic clock), for the timeline.
    """

    job_id: str
    attempt: int
    operation: str
    lane: Lane
    request: bytes = b"null"
    env: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    secrets: SecretValues = NO_SECRETS
    target: TargetGrant | None = None
    limits: Limits = field(default_factory=Limits)
    keep_result: bool = True
    claimed_ns: int | None = None


# --- how an attempt ended -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The function returned a result that its type accepts.

    Exactly one of `result` (JSON text, small) and `result_file` is set, neither when the result
    was not to be kept.
    """

    result: bytes | None
    result_file: Path | None = None
    result_bytes: int = 0
    outcome = Outcome.SUCCEEDED


@dataclass(frozen=True, slots=True)
class RetryAsked:
    """The function raised `Retry`. `after_s` is None when the operation's backoff decides."""

    after_s: float | None
    reason: str
    outcome = Outcome.FAILED


@dataclass(frozen=True, slots=True)
class Raised:
    """The function raised, its input was refused, or its result could not be serialized.

    Attributes:
        retry: True when the operation's `retry_on` names this error.
    """

    error: ErrorInfo
    retry: bool
    outcome = Outcome.FAILED


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """The attempt needed more memory than it could have; `evidence` says how that is known."""

    evidence: str
    error: ErrorInfo | None = None
    outcome = Outcome.OUT_OF_MEMORY


@dataclass(frozen=True, slots=True)
class Died:
    """The process ended without an answer.

    Attributes:
        signal: Number of the signal that killed it, or None.
        exit_code: Its exit code, or None when a signal killed it or nobody could know.
        description: The cause as one sentence.
    """

    signal: int | None
    exit_code: int | None
    description: str
    outcome = Outcome.WORKER_LOST


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The attempt ran longer than its `timeout_s` and was stopped."""

    timeout_s: float
    outcome = Outcome.TIMED_OUT


@dataclass(frozen=True, slots=True)
class Cancelled:
    """`RunningAttempt.cancel` ended it, by JobCancelled or by SIGKILL (see the KillReport)."""

    outcome = Outcome.CANCELLED


@dataclass(frozen=True, slots=True)
class NotStarted:
    """No process could be had (fork refused, supervisor closing): not the job's fault."""

    reason: str
    outcome = Outcome.WORKER_LOST


Ending = Succeeded | RetryAsked | Raised | OutOfMemory | Died | TimedOut | Cancelled | NotStarted


# --- what belongs to every ending -------------------------------------------------------------


class KillMeans(StrEnum):
    """How a process tree is found and killed, best first."""

    CGROUP = "cgroup"
    SUBREAPER = "subreaper"
    PROCESS_GROUP = "process_group"


@dataclass(frozen=True, slots=True)
class KillReport:
    """Proof of a kill (N10).

    Attributes:
        reason: `cancelled`, `timed_out`, `memory_limit`, `left_over` (descendants that outlived
            their job) or `closing`.
        obeyed: The main process ended by itself within the grace period.
        killed: Processes that got SIGKILL, in order.
        survivors: Processes that could not be shown dead; empty unless the host refuses.
        duration_s: From the first signal to the last process gone.
    """

    reason: str
    means: KillMeans
    obeyed: bool
    main_pid: int
    killed: tuple[int, ...]
    survivors: tuple[int, ...]
    duration_s: float

    def as_event(self) -> dict[str, Any]:
        """The report as a JSON object for the job's event log."""
        return {
            "reason": self.reason,
            "means": self.means.value,
            "obeyed": self.obeyed,
            "main_pid": self.main_pid,
            "killed": list(self.killed),
            "survivors": list(self.survivors),
            "duration_s": round(self.duration_s, 6),
        }


@dataclass(frozen=True, slots=True)
class Usage:
    """What the attempt's whole process tree used (J26).

    Attributes:
        peak_rss_bytes: Largest sum of resident memory seen, 0 when nothing was seen.
        rss_growth_bytes: Growth of a warm process over this attempt; 0 in the long lane.
        cpu_s: User and system time.
    """

    peak_rss_bytes: int = 0
    rss_growth_bytes: int = 0
    cpu_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Timeline:
    """When each phase began, nanoseconds on the host's monotonic clock; None: never reached.

    Attributes:
        claimed_ns: The dispatcher had the job.
        requested_ns: `Supervisor.start` was called.
        forked_ns: A process was there, fresh or warm.
        ran_ns: The function was entered.
        returned_ns: The function was left.
        ended_ns: The tree was gone, the log complete.
    """

    claimed_ns: int | None
    requested_ns: int
    forked_ns: int | None
    ran_ns: int | None
    returned_ns: int | None
    ended_ns: int


@dataclass(frozen=True, slots=True)
class LogSummary:
    """The attempt's log when it ended.

    Attributes:
        size_bytes: Bytes in the log file, the cut mark included.
        discarded_bytes: Bytes thrown away behind the limit or for want of disk space.
        complete: False when a surviving process still held the pipe, or the disk was full.
    """

    size_bytes: int = 0
    discarded_bytes: int = 0
    complete: bool = True


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """How an attempt ended, and everything known about it.

    Attributes:
        kill: Set when anything had to be signalled, also for descendants left over by a job that
            ended well.
    """

    ending: Ending
    usage: Usage
    timeline: Timeline
    log: LogSummary
    pid: int | None = None
    kill: KillReport | None = None

    @property
    def outcome(self) -> Outcome:
        """The outcome this attempt has, before any decision to retry."""
        return self.ending.outcome


@dataclass(frozen=True, slots=True)
class Progress:
    """The newest progress of an attempt; older ones are never kept."""

    fraction: float | None
    message: str | None
    numbers: Mapping[str, float] = field(default_factory=dict)


class AttemptObserver(Protocol):
    """Told what happens during an attempt, on the supervisor's event loop.

    Calls must not block; they come before `RunningAttempt.wait` returns. Progress and log growth
    are coalesced: the newest is always delivered, some in between are not.
    """

    def may_write(self) -> bool:
        """False while the lease is over: then nothing is written to the log (J5)."""

    def on_started(self, pid: int) -> None:
        """The function was entered in process `pid`."""

    def on_progress(self, progress: Progress) -> None:
        """The job said how far it is."""

    def on_artifact(self, artifact: Artifact) -> None:
        """An artifact is complete in the state directory."""

    def on_log_growth(self, size_bytes: int) -> None:
        """The log file now has `size_bytes` bytes."""


class IgnoreEvents:
    """An observer that is not interested."""

    def may_write(self) -> bool:
        return True

    def on_started(self, pid: int) -> None: ...

    def on_progress(self, progress: Progress) -> None: ...

    def on_artifact(self, artifact: Artifact) -> None: ...

    def on_log_growth(self, size_bytes: int) -> None: ...
