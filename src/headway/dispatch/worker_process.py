"""The hold on a worker process: starts it, starts it again when it dies, stops it.

The API keeps its worker so, and `headway worker` the one that it stands for.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal

from headway.core.clock import Clock, s_from_ns
from headway.core.errors import ConfigError
from headway.dispatch.worker_life import END_NOW, WorkerLife, WorkerStatus, how_it_ended
from headway.dispatch.worker_settings import WorkerSettings

_log = logging.getLogger(__name__)

_BACKOFF_S = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
_STEADY_S = 60.0
"""A worker that lived for so long has shown that it can; its next death is forgiven."""
_KILL_AFTER_S = 15.0
"""Beyond its own drain limit, what a worker may take to end before it is killed."""


class WorkerProcess:
    """Keeps one worker process alive and answering.

    Args:
        settings: Handed to every incarnation.
        clock: Measures how long a worker lived, and how long it was silent.
    """

    def __init__(self, settings: WorkerSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._life: WorkerLife | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._stopping = False
        self.status: WorkerStatus | None = None
        self.restarts = 0
        self.silenced = 0
        """Times it was killed because it gave no sign of life."""

    @property
    def pid(self) -> int | None:
        """The worker's process id; None while there is none."""
        return None if self._life is None or self._life.ended else self._life.pid

    @property
    def ready(self) -> bool:
        """Whether a worker runs that has said that it is ready."""
        return self.pid is not None and self.status is not None and self.status.ready

    async def start(self) -> WorkerStatus:
        """Start the worker and wait until it is ready, or has ended because `stop` was called.

        Raises:
            ConfigError: it says that it cannot work; the text is its own.
        """
        status = self.status = await self._launch()
        if not status.ready:
            await self._end(_KILL_AFTER_S, hang_up=True)
            if self._stopping:
                return status  # whoever stops a start wants no error for it
            raise ConfigError(status.error)
        self._keeper = asyncio.create_task(self._keep(), name="headway-worker-keeper")
        return self.status

    async def stop(self) -> None:
        """SIGTERM, the drain, and SIGKILL if it does not end. Calling it twice is fine.

        Cancelling the call and calling `hurry` is how a second SIGTERM is passed on.
        """
        self._stopping = True
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
            self._keeper = None
        self._signal(signal.SIGTERM)
        settings = self._settings
        await self._end(settings.drain_s + settings.drain_grace_s + _KILL_AFTER_S)

    def hurry(self) -> None:
        """Tell the worker to end now, without the rest of its drain."""
        self._signal(END_NOW)

    def _signal(self, number: signal.Signals) -> None:
        if self._life is not None:
            self._life.signal(number)

    async def _keep(self) -> None:
        """Start the worker again whenever it dies."""
        deaths = 0
        while not self._stopping:
            began_ns = self._clock.monotonic_ns()
            assert self._life is not None
            code = await self._life.wait()
            self.status = None
            lived_s = s_from_ns(self._clock.monotonic_ns() - began_ns)
            deaths = 1 if lived_s > _STEADY_S else deaths + 1
            delay_s = _BACKOFF_S[min(deaths, len(_BACKOFF_S)) - 1]
            _log.error("the worker %s; starting it again in %g s", how_it_ended(code), delay_s)
            await asyncio.sleep(delay_s)
            self.restarts += 1
            self.status = await self._launch()
            if not self.status.ready:
                _log.error("the worker cannot work: %s", self.status.error)

    async def _launch(self) -> WorkerStatus:
        self._life = await WorkerLife.start(self._settings, self._clock, self._count_silence)
        return await self._life.status()

    def _count_silence(self) -> None:
        self.silenced += 1

    async def _end(self, limit_s: float, *, hang_up: bool = False) -> None:
        life = self._life
        if life is None:
            return
        if hang_up:
            life.close_input()
        try:
            async with asyncio.timeout(limit_s):
                await life.wait()
        except TimeoutError:
            _log.error("the worker did not end within %g s and is killed", limit_s)
            life.kill()
            await life.wait()
