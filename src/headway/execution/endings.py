"""How an attempt ended: by what its process said, why it was stopped, or how it died."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from headway.execution.attempt import (
    Cancelled,
    Died,
    Ending,
    Limits,
    OutOfMemory,
    Raised,
    RetryAsked,
    TimedOut,
    Usage,
)
from headway.execution.cgroup import Cgroup
from headway.execution.job_process import EXIT_INTERNAL_ERROR
from headway.execution.messages import Ended, GaveError, GaveRetry, GaveUp
from headway.execution.process import Exit, JobProcessHandle
from headway.execution.usage_sampler import UsageSampler, Watched


@dataclass(frozen=True, slots=True)
class Stop:
    """Why and since when an attempt is being stopped.

    Attributes:
        reason: `timed_out`, `memory_limit`, or the word of whoever cancelled it.
        tree_bytes: For `memory_limit`: what its processes used.
    """

    reason: str
    began_ns: int
    tree_bytes: int = 0

    def ending(self, limits: Limits) -> Ending:
        """The ending of an attempt that was stopped for this."""
        if self.reason == "timed_out":
            return TimedOut(limits.timeout_s or 0.0)
        if self.reason == "memory_limit":
            return OutOfMemory(
                f"its processes used {self.tree_bytes} bytes, over the limit of "
                f"{limits.memory_bytes}"
            )
        return Cancelled()


def told(verdict: GaveError | GaveRetry | GaveUp, stopped: Ending | None) -> Ending:
    """The ending that a process told of, when that was no result.

    Args:
        verdict: What it said.
        stopped: The ending for which it was being stopped, if it was.
    """
    match verdict:
        case GaveRetry(after_s, reason):
            return RetryAsked(after_s, reason)
        case GaveError(error, _, out_of_memory) if out_of_memory:
            return OutOfMemory("the operation raised MemoryError", error)
        case GaveError(error, retry, _):
            return Raised(error, retry)
        case GaveUp():
            return stopped or Died(
                signal.SIGTERM, None, "stopped by a SIGTERM that Headway did not send"
            )


def death(group: Cgroup | None, exit_: Exit | None, sampler: UsageSampler) -> Ending:
    """The ending of an attempt whose process died without a word and was not told to stop.

    Args:
        group: Its control group.
        exit_: How it ended; None: nobody saw it.
        sampler: Knows of the host's recent out-of-memory kills.
    """
    killed_by = exit_.signal if exit_ else None
    if group is not None and group.out_of_memory_kills():
        return OutOfMemory("the kernel killed it at the memory limit of its control group")
    if killed_by == signal.SIGKILL and (oom := sampler.recent_oom_kills()):
        return OutOfMemory(
            f"it got SIGKILL while the kernel's out-of-memory killer killed {oom} process(es)"
        )
    code = exit_.exit_code if exit_ else None
    return Died(killed_by, code, _describe(killed_by, code))


def usage_of(
    process: JobProcessHandle, watched: Watched, ended: Ended | None, exit_: Exit | None
) -> Usage:
    """What an attempt used, by all who measured it."""
    peaks = [watched.peak_rss_bytes]
    cpu_s = ended.cpu_s if ended else exit_.cpu_s if exit_ else 0.0
    if ended is not None:
        peaks.append(ended.peak_rss_bytes)
    elif exit_ is not None:
        peaks.append(exit_.peak_rss_bytes)
    if process.cgroup is not None and process.attempts == 1:
        # Counts also descendants that nobody waited for.
        cpu_s = max(cpu_s, process.cgroup.cpu_s() or 0.0)
    return Usage(max(peaks), ended.rss_growth_bytes if ended else 0, cpu_s)


def _describe(killed_by: int | None, code: int | None) -> str:
    if killed_by is not None:
        return f"the job's process was killed by {signal.Signals(killed_by).name}"
    if code == EXIT_INTERNAL_ERROR:
        return "Headway's own code in the job's process failed; the log has the traceback"
    if code is not None:
        return f"the job's process ended itself with exit code {code}"
    return "the job's process died together with the forkserver; nobody saw how"
