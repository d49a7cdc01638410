"""One load worker as the parent sees it: its process, its channel, and how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable

from headway.core.clock import NS_PER_S, Clock
from headway.load.channel import Channel
from headway.load.early import EarlyWorker
from headway.load.messages import Broken, FromWorker, ToWorker, decoder_for_parent, encode

_REAP_POLL_S = 0.002


class WorkerProcess:
    """One worker: its process, its channel, and what is known of it."""

    def __init__(self, number: int, spawned: EarlyWorker, clock: Clock) -> None:
        self.number = number
        self._clock = clock
        self._decoder = decoder_for_parent()
        self.on_message: Callable[[WorkerProcess, FromWorker], None] = lambda w, m: None
        self.on_closed: Callable[[WorkerProcess], None] = lambda w: None
        self.heard_ns = clock.monotonic_ns()
        self.killed_because: str | None = None
        self.last_words: str | None = None
        self.process = spawned.process
        self.channel = Channel(spawned.socket, self._received, lambda: self.on_closed(self))

    def send(self, message: ToWorker) -> None:
        """Queue a message."""
        self.channel.send(encode(message))

    def kill(self, because: str | None = None) -> None:
        """SIGKILL; what it had sent is still read."""
        if self.process.poll() is None:
            self.killed_because = self.killed_because or because
            self.process.kill()

    async def reap(self, deadline_s: float) -> bool:
        """Wait until the process has ended.

        Polled, not waited for in a thread: with one CPU the default thread pool is small, and a
        full one would let nothing end (trap 34).
        """
        deadline_ns = self._clock.monotonic_ns() + int(deadline_s * NS_PER_S)
        while self.process.poll() is None:
            if self._clock.monotonic_ns() > deadline_ns:
                return False
            await asyncio.sleep(_REAP_POLL_S)
        return True

    async def last_words_heard(self, deadline_s: float) -> None:
        """Wait until the process has ended and all that it sent was read."""
        if await self.reap(deadline_s):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.channel.wait_closed(), deadline_s)

    def cause_of_death(self) -> str:
        """How it ended, in a few words."""
        status = self.process.poll()
        # One that was ending already when it was killed has told its own reason.
        if self.killed_because is not None and status in (None, -signal.SIGKILL):
            return self.killed_because
        if status is None:
            return "closed its socket"
        if status < 0:
            return f"signal {-status} ({signal.Signals(-status).name})"
        return f"exit code {status}" if self.last_words is None else "an error of its own"

    def _received(self, payload: bytes) -> None:
        self.heard_ns = self._clock.monotonic_ns()
        message = self._decoder.decode(payload)
        if isinstance(message, Broken):
            self.last_words = message.traceback
        self.on_message(self, message)
