"""The API's hold on its worker process: starts it, starts it again when it dies, stops it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from asyncio.subprocess import PIPE, Process

import msgspec

from headway.core.clock import Clock, s_from_ns
from headway.core.errors import ConfigError
from headway.dispatch.worker_settings import WorkerSettings

_log = logging.getLogger(__name__)

_READY_S = 90.0
_BACKOFF_S = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
_STEADY_S = 60.0
"""A worker that lived for so long has shown that it can; its next death is forgiven."""
_KILL_AFTER_S = 15.0
"""Beyond its own drain limit, what a worker may take to end before it is killed."""


class WorkerStatus(msgspec.Struct):
    """The line by which a worker says that it is ready, or why it is not."""

    ready: bool
    pid: int = 0
    error: str = ""
    lanes: dict[str, dict[str, int]] = {}


class WorkerProcess:
    """Keeps one worker process alive.

    The worker's standard input is a pipe from this process: its first line are the settings, its
    end tells the worker that this process is dead, however it died.

    Args:
        settings: Handed to every incarnation.
        clock: Measures how long a worker lived.
    """

    def __init__(self, settings: WorkerSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._process: Process | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._stopping = False
        self.status: WorkerStatus | None = None
        self.restarts = 0

    @property
    def pid(self) -> int | None:
        """The worker's process id; None while there is none."""
        alive = self._process is not None and self._process.returncode is None
        return self._process.pid if alive and self._process is not None else None

    @property
    def ready(self) -> bool:
        """Whether a worker runs that has said that it is ready."""
        return self.pid is not None and self.status is not None and self.status.ready

    async def start(self) -> WorkerStatus:
        """Start the worker and wait until it is ready.

        Raises:
            ConfigError: it says that it cannot work; the text is its own.
        """
        self.status = await self._launch()
        if not self.status.ready:
            await self._end()
            raise ConfigError(self.status.error)
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
        limit_s = self._settings.drain_s + self._settings.drain_grace_s + _KILL_AFTER_S
        await self._end(limit_s)

    def hurry(self) -> None:
        """Tell a draining worker to end now."""
        self._signal(signal.SIGTERM)

    async def _keep(self) -> None:
        """Start the worker again whenever it dies."""
        deaths = 0
        while not self._stopping:
            began_ns = self._clock.monotonic_ns()
            assert self._process is not None
            code = await self._process.wait()
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
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "headway.dispatch.worker_main",
            stdin=PIPE,
            stdout=PIPE,
            start_new_session=True,  # Ctrl-C reaches the server, which drains the worker in order
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(self._settings.model_dump_json().encode() + b"\n")
        try:
            async with asyncio.timeout(_READY_S):
                line = await self._process.stdout.readline()
        except TimeoutError:
            # Alive and silent it would be waited for as long as it lives.
            self._process.kill()
            return WorkerStatus(ready=False, error=f"it was not ready within {_READY_S:g} s")
        if not line:
            code = await self._process.wait()
            return WorkerStatus(ready=False, error=f"it {how_it_ended(code)} before it was ready")
        return msgspec.json.decode(line, type=WorkerStatus)

    async def _end(self, limit_s: float = _KILL_AFTER_S) -> None:
        process = self._process
        if process is None:
            return
        if process.stdin is not None and limit_s == _KILL_AFTER_S:
            process.stdin.close()
        try:
            async with asyncio.timeout(limit_s):
                await process.wait()
        except TimeoutError:
            _log.error("the worker did not end within %g s and is killed", limit_s)
            process.kill()
            await process.wait()

    def _signal(self, number: signal.Signals) -> None:
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)


def how_it_ended(code: int) -> str:
    """An exit code in words."""
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
