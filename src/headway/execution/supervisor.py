"""Starts job processes, watches them, and says exactly how each attempt ended."""

from __future__ import annotations

from headway.core.clock import Clock
from headway.core.statedir import StateDir
from headway.execution.attempt import (
    AttemptObserver,
    AttemptPlan,
    AttemptResult,
    KillMeans,
    KillReport,
)
from headway.execution.settings import SupervisorSettings


class RunningAttempt:
    """One attempt in a process of its own, or in a warm one that it has for itself."""

    plan: AttemptPlan

    @property
    def pid(self) -> int | None:
        """Process id of the main process once there is one."""
        raise NotImplementedError

    async def wait(self) -> AttemptResult:
        """The result, once the tree is gone and the log complete. May be awaited repeatedly."""
        raise NotImplementedError

    async def cancel(
        self, grace_s: float | None = None, reason: str = "cancelled"
    ) -> KillReport | None:
        """Stop the attempt: SIGTERM, the grace period, then SIGKILL for the whole tree.

        Args:
            grace_s: Seconds; None takes the plan's, 0 kills at once. A later call with a shorter
                grace shortens the first one's.
            reason: Goes into the report.

        Returns:
            The report; None when the attempt had ended by itself before any signal.
        """
        raise NotImplementedError


class Supervisor:
    """Owner of every job process of a worker process.

    Use as an async context manager, or call `open` and `close`.
    """

    def __init__(self, settings: SupervisorSettings, state_dir: StateDir, clock: Clock) -> None:
        raise NotImplementedError

    async def open(self) -> None:
        """Kill what a dead predecessor left, start the forkserver, preload the operations.

        Raises:
            ConfigError: an operation module cannot be imported; the text has its traceback.
        """

    async def start(
        self, plan: AttemptPlan, observer: AttemptObserver | None = None
    ) -> RunningAttempt:
        """Begin an attempt. Never raises for the job's sake: see `NotStarted`."""
        raise NotImplementedError

    async def close(self, grace_s: float = 0.0) -> None:
        """Cancel what runs (reason `closing`), stop every process. Can be called again."""

    @property
    def kill_means(self) -> KillMeans:
        """The means that kills on this host, or the forced one."""
        raise NotImplementedError

    def statistics(self) -> dict[str, int]:
        """Processes by kind (running, spare, warm_idle), forks and forkserver restarts so far."""
        raise NotImplementedError
