"""Which process an attempt gets: a fresh one for the long lane, a warm one for the short."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from headway.core.states import Lane
from headway.execution.forkserver import ForkRefused
from headway.execution.messages import Ended
from headway.execution.process import JobProcessHandle
from headway.execution.process_factory import ProcessFactory
from headway.execution.settings import SupervisorSettings

log = logging.getLogger(__name__)


class ProcessPool:
    """Keeps fresh processes ahead of need and warm ones for reuse.

    There is no queue in here: whoever asks gets a process at once, forked if need be. How many run
    at a time is the lanes' business. Each process serves one attempt at a time, so a death costs
    that attempt only (trap 2).
    """

    def __init__(self, factory: ProcessFactory, settings: SupervisorSettings) -> None:
        self._factory = factory
        self._settings = settings
        self._fresh: list[JobProcessHandle] = []
        self._warm: list[JobProcessHandle] = []
        self._refill: asyncio.Task[None] | None = None
        self._closing = False

    def open(self) -> None:
        """Begin to fork the spare processes."""
        self._refill_soon()

    async def take(self, lane: Lane) -> JobProcessHandle:
        """A process that runs nothing.

        Raises:
            ForkRefused: the host gives none.
        """
        try:
            if lane is Lane.SHORT and (process := _take_living(self._warm)):
                return process
            if process := _take_living(self._fresh):
                return process
            return await self._new()
        finally:
            self._refill_soon()

    def can_reuse(self, process: JobProcessHandle, ended: Ended) -> bool:
        """Whether a process that ran a short attempt is as good as new, and wanted."""
        if process.rss_at_birth_bytes == 0:
            process.rss_at_birth_bytes = ended.rss_bytes - ended.rss_growth_bytes
        growth = ended.rss_bytes - process.rss_at_birth_bytes
        return (
            ended.retire is None
            and not ended.descendants
            and not self._closing
            and process.attempts < self._settings.warm_max_jobs
            and growth <= self._settings.warm_max_growth_bytes
            and len(self._warm) < self._settings.warm_processes
        )

    def give_back(self, process: JobProcessHandle) -> None:
        """Keep a process for the next short attempt."""
        self._warm.append(process)

    async def close(self) -> None:
        """Dismiss the idle processes."""
        self._closing = True
        if self._refill is not None:
            self._refill.cancel()
            await asyncio.gather(self._refill, return_exceptions=True)
        for process in (*self._fresh, *self._warm):
            process.dismiss()

    def counts(self) -> dict[str, int]:
        """Idle processes by kind."""
        return {"spare": len(self._fresh), "warm_idle": len(self._warm)}

    def _refill_soon(self) -> None:
        if self._refill is None and not self._closing:
            self._refill = asyncio.get_running_loop().create_task(self._refill_fresh())

    async def _refill_fresh(self) -> None:
        try:
            while len(self._fresh) < self._settings.spare_processes and not self._closing:
                self._fresh.append(await self._new())
        except ForkRefused as refused:
            # Not tried again until somebody asks for a process and learns of it.
            log.warning("no spare process: %s", refused)
        finally:
            self._refill = None

    async def _new(self) -> JobProcessHandle:
        process = await self._factory.new()
        process.exit.add_done_callback(lambda _: self._forget(process))
        return process

    def _forget(self, dead: JobProcessHandle) -> None:
        """An idle process died: nothing is lost but the process."""
        for idle in (self._fresh, self._warm):
            with contextlib.suppress(ValueError):
                idle.remove(dead)
                self._factory.bury(dead)


def _take_living(idle: list[JobProcessHandle]) -> JobProcessHandle | None:
    while idle:
        # The last one used is the one whose memory is still in the caches.
        process = idle.pop()
        if not process.is_dead():
            return process
    return None
