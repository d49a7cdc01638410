"""Which process an attempt gets: a fresh one for the long lane, a warm one for the short."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque

from headway.core.states import Lane
from headway.execution.forkserver import ForkRefused
from headway.execution.messages import Ended
from headway.execution.process import JobProcessHandle
from headway.execution.process_factory import ProcessFactory
from headway.execution.settings import SupervisorSettings

log = logging.getLogger(__name__)

WARM_WAIT_S = 0.025
"""How long a short attempt waits for one of the kept processes before another is forked: attempts
of a millisecond take turns on a few processes, and those that take longer have one each."""


class ProcessPool:
    """Keeps fresh processes ahead of need and warm ones for reuse.

    How many attempts run at a time is the lanes' business: whoever asks gets a process, forked if
    need be. Only a short attempt that finds all kept processes busy waits for one, WARM_WAIT_S at
    most. Each process serves one attempt at a time, so a death costs that attempt only (trap 2).
    """

    def __init__(self, factory: ProcessFactory, settings: SupervisorSettings) -> None:
        self._factory = factory
        self._settings = settings
        self._fresh: list[JobProcessHandle] = []
        self._warm: list[JobProcessHandle] = []
        self._serving: dict[JobProcessHandle, float] = {}
        self._forking = 0
        self._waiting: deque[asyncio.Future[JobProcessHandle | None]] = deque()
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
            if lane is Lane.SHORT:
                return await self._take_short()
            return _take_living(self._fresh) or await self._new()
        finally:
            self._refill_soon()

    async def _take_short(self) -> JobProcessHandle:
        process = _take_living(self._warm)
        if process is None and self._busy >= self._settings.warm_processes:
            process = await self._next_given_back()
        if process is None:
            self._forking += 1
            try:
                process = _take_living(self._fresh) or await self._new()
            finally:
                self._forking -= 1
        self._serving[process] = asyncio.get_running_loop().time()
        return process

    @property
    def _busy(self) -> int:
        """Processes that serve a short attempt, or are about to."""
        return len(self._serving) + self._forking

    async def _next_given_back(self) -> JobProcessHandle | None:
        """A process that another attempt has just left; None: one is to be forked."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[JobProcessHandle | None] = loop.create_future()
        self._waiting.append(waiter)
        timer = loop.call_later(WARM_WAIT_S, _answer, waiter, None)
        try:
            return await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled() and (process := waiter.result()) is not None:
                self.give_back(process)  # Given to this attempt already, which does not take it.
            raise
        finally:
            timer.cancel()

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
            and not self._is_one_too_many(process)
        )

    def _is_one_too_many(self, process: JobProcessHandle) -> bool:
        """Whether it was forked beyond the kept ones, and attempts are brief enough to wait."""
        if self._busy + len(self._warm) <= self._settings.warm_processes:
            return False
        began_s = self._serving.get(process, 0.0)
        return asyncio.get_running_loop().time() - began_s < WARM_WAIT_S / 2

    def give_back(self, process: JobProcessHandle) -> None:
        """Keep a process for the next short attempt."""
        if process.exit.done():
            self._left(process)
        elif (waiter := self._next_waiting()) is not None:
            self._serving[process] = asyncio.get_running_loop().time()
            waiter.set_result(process)
        else:
            self._serving.pop(process, None)
            self._warm.append(process)

    def retire(self, process: JobProcessHandle) -> None:
        """Let a process that ran a short attempt end."""
        self._left(process)
        process.dismiss()

    def _left(self, process: JobProcessHandle) -> None:
        """It serves no more; somebody who waited for it may fork another."""
        if self._serving.pop(process, None) is None:
            return
        if self._busy < self._settings.warm_processes and (waiter := self._next_waiting()):
            waiter.set_result(None)

    def _next_waiting(self) -> asyncio.Future[JobProcessHandle | None] | None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                return waiter
        return None

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
        """A process died. When it was idle nothing is lost but the process."""
        self._left(dead)
        for idle in (self._fresh, self._warm):
            with contextlib.suppress(ValueError):
                idle.remove(dead)
                self._factory.bury(dead)


def _answer(
    waiter: asyncio.Future[JobProcessHandle | None], process: JobProcessHandle | None
) -> None:
    if not waiter.done():
        waiter.set_result(process)


def _take_living(idle: list[JobProcessHandle]) -> JobProcessHandle | None:
    while idle:
        # The last one used is the one whose memory is still in the caches.
        process = idle.pop()
        if not process.is_dead():
            return process
    return None
