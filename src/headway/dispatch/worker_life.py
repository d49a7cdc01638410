"""One life of a worker process, as its keeper sees it: what it says, and that it says anything."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from typing import Self

import msgspec

from headway.core.clock import Clock
from headway.dispatch.signs_of_life import BEAT, Silence
from headway.dispatch.worker_settings import WorkerSettings

_log = logging.getLogger(__name__)

END_NOW = signal.SIGUSR1
"""Tells a worker to end without a drain. No second SIGTERM, because two that wait for a busy
process to take them are one: the drain then took its whole time."""

_READY_S = 90.0
_MAX_LINE = 1024 * 1024


class WorkerStatus(msgspec.Struct):
    """The line by which a worker says that it is ready, or why it is not."""

    ready: bool
    pid: int = 0
    error: str = ""
    lanes: dict[str, dict[str, int]] = {}
    connections: int = 0
    """To the database; it opens no more than these (J17)."""


class WorkerLife:
    """A started worker process.

    Its standard input is a pipe from this process: the first line are the settings, its end tells
    the worker that this process is dead, however it died. Its standard output brings one line of
    status, and signs of life; from the first of these on it is killed when they stay away.

    Args:
        process: Made by `start`.
        patience_s: Silence after which it is killed.
        clock: Measures that.
        on_silence: Told when it was killed for its silence.
    """

    def __init__(
        self, process: Process, patience_s: float, clock: Clock, on_silence: Callable[[], None]
    ) -> None:
        self._process = process
        self._patience_s = patience_s
        self._silence = Silence(patience_s, clock)
        self._on_silence = on_silence
        self._status: asyncio.Future[WorkerStatus | None] = (
            asyncio.get_running_loop().create_future()
        )
        self._listening = asyncio.create_task(self._listen(), name="headway-worker-listener")
        self._watching: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls, settings: WorkerSettings, clock: Clock, on_silence: Callable[[], None]
    ) -> Self:
        """Start a process with these settings."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "headway.dispatch.worker_main",
            stdin=PIPE,
            stdout=PIPE,
            limit=_MAX_LINE,
            start_new_session=True,  # Ctrl-C and Ctrl-Z reach its keeper, which ends it in order
        )
        assert process.stdin is not None
        process.stdin.write(settings.model_dump_json().encode() + b"\n")
        return cls(process, settings.worker_patience_s, clock, on_silence)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        return self._process.returncode is not None

    async def status(self) -> WorkerStatus:
        """What it says of itself; also when it says nothing or dies over it."""
        try:
            async with asyncio.timeout(_READY_S):
                status = await asyncio.shield(self._status)
        except TimeoutError:
            # Alive and silent it would be waited for as long as it lives.
            self.kill()
            return WorkerStatus(ready=False, error=f"it was not ready within {_READY_S:g} s")
        if status is None:
            code = await self.wait()
            return WorkerStatus(ready=False, error=f"it {how_it_ended(code)} before it was ready")
        return status

    async def wait(self) -> int:
        """Its exit code, once it has ended."""
        code = await self._process.wait()
        self._stop_watching()
        return code

    def close_input(self) -> None:
        """Let it believe that its keeper is dead."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if it lives."""
        if not self.ended:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    def kill(self) -> None:
        """End it, stopped or not. Its forkserver and jobs follow: their pipes from it break."""
        self.signal(signal.SIGKILL)

    async def _listen(self) -> None:
        output = self._process.stdout
        assert output is not None
        try:
            while line := await output.readline():
                self._hear(line)
        except (OSError, ValueError, msgspec.MsgspecError) as error:  # no line of its own
            _log.error("what the worker says cannot be understood: %s", error)
        if not self._status.done():
            self._status.set_result(None)

    def _hear(self, line: bytes) -> None:
        self._silence.heard()
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch(), name="headway-worker-watch")
        if line != BEAT and not self._status.done():
            self._status.set_result(msgspec.json.decode(line, type=WorkerStatus))

    async def _watch(self) -> None:
        await self._silence.too_long()
        if self.ended:
            return
        _log.error(
            "the worker (process %d) has given no sign of life for %g s; it is killed, so that"
            " it cannot keep the store locked, and what it ran is rescued",
            self.pid,
            self._patience_s,
        )
        self._on_silence()
        self.kill()

    def _stop_watching(self) -> None:
        for task in (self._listening, self._watching):
            if task is not None:
                task.cancel()
        if not self._status.done():
            self._status.set_result(None)


def how_it_ended(code: int) -> str:
    """An exit code in words."""
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
