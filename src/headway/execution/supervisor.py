"""Starts job processes, watches them, and says exactly how each attempt ended."""

from __future__ import annotations

import asyncio
import os
from types import TracebackType

from headway.core.clock import Clock
from headway.core.errors import ConfigError
from headway.core.statedir import StateDir
from headway.core.states import Lane
from headway.execution.attempt import AttemptObserver, AttemptPlan, IgnoreEvents, KillMeans
from headway.execution.linux import process_name
from headway.execution.process_factory import ProcessFactory
from headway.execution.process_pool import ProcessPool
from headway.execution.running import RunningAttempt, Workshop
from headway.execution.settings import SupervisorSettings
from headway.execution.temp_dirs import TempDirs
from headway.execution.usage_sampler import UsageSampler


class Supervisor:
    """Owner of every job process of a worker process.

    Use it as an async context manager, or call `open` and `close`. It has no queue: how many
    attempts run at a time is the dispatcher's business.
    """

    def __init__(self, settings: SupervisorSettings, state_dir: StateDir, clock: Clock) -> None:
        if not hasattr(os, "pidfd_open"):
            raise ConfigError("job processes need Linux 5.3 or later (pidfd); use the inline lane")
        owner = process_name(os.getpid()) or str(os.getpid())
        self._factory = ProcessFactory(settings, clock)
        self._state_dir = state_dir
        self._running: set[RunningAttempt] = set()
        self._shop = Workshop(
            factory=self._factory,
            pool=ProcessPool(self._factory, settings),
            sampler=UsageSampler(),
            temp_dirs=TempDirs(state_dir.tmp, owner),
            state_dir=state_dir,
            work_dir=str(state_dir.work),
            clock=clock,
        )

    async def open(self) -> None:
        """Kill what a dead predecessor left, start the forkserver, preload the operations.

        Raises:
            ConfigError: an operation module cannot be imported; the text has its traceback.
        """
        self._state_dir.create()
        await asyncio.to_thread(self._shop.temp_dirs.open)
        await self._factory.open()
        self._shop.pool.open()

    async def start(
        self, plan: AttemptPlan, observer: AttemptObserver | None = None
    ) -> RunningAttempt:
        """Begin an attempt. Never raises for the job's sake: see `NotStarted`.

        Raises:
            ConfigError: the plan is for the inline lane, which needs no process.
        """
        if plan.lane is Lane.INLINE:
            raise ConfigError("the inline lane does not run in processes")
        running = RunningAttempt(plan, observer or IgnoreEvents(), self._shop)
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        return running

    async def kill_stale(self) -> None:
        """Kill the job processes of supervisors that are dead; those of the living stay."""
        await self._factory.kill_stale()

    async def close(self, grace_s: float = 0.0) -> None:
        """Stop what runs (reason `closing`) and every process. Can be called again."""
        await asyncio.gather(
            *(running.cancel(grace_s, "closing") for running in tuple(self._running)),
            return_exceptions=True,
        )
        self._shop.sampler.close()
        await self._shop.pool.close()
        await self._factory.close()
        await asyncio.to_thread(self._shop.temp_dirs.close)

    async def __aenter__(self) -> Supervisor:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def kill_means(self) -> KillMeans:
        """The means that kills on this host, or the forced one."""
        return self._factory.killer.means

    @property
    def forkserver_pid(self) -> int | None:
        """The forkserver of the moment."""
        return self._factory.forkserver_pid

    def statistics(self) -> dict[str, int]:
        """Attempts running, idle processes by kind, forks and forkserver restarts so far."""
        return {
            "running": len(self._running),
            **self._shop.pool.counts(),
            "forks": self._factory.forks,
            "forkserver_restarts": self._factory.restarts,
        }
