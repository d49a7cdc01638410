"""Signs of life: a worker beats, the process that keeps it listens and counts the silence.

A worker that is stopped (a debugger, Ctrl-Z, `kill -STOP`, a frozen container) does not die, and
neither does its hold on the database: stopped within a write transaction it keeps everybody else
from writing for as long as it stands still. Its keeper therefore ends a worker that gives no sign
of life for longer than some patience. Both halves take care that nobody else looks dead:

- The beats come from a thread of their own, so a busy event loop is alive (trap 22). Jobs run in
  other processes and cannot hold this one's interpreter lock.
- The listener counts small steps of its own waking time. What it slept through itself (the
  machine was suspended, both processes were stopped and went on) counts as one step at most.
"""

from __future__ import annotations

import asyncio
import os
import threading

from headway.core.clock import Clock, s_from_ns

BEAT = b"\n"
BEAT_S = 1.0
"""Between two signs of life."""
_STEPS = 10
"""In so many steps the patience is counted."""


class Heartbeat:
    """A thread that writes a sign of life until the process ends.

    Args:
        descriptor: A pipe whose reader counts them. A full or broken pipe ends or blocks only the
            thread.
        interval_s: Between two of them.
    """

    def __init__(self, descriptor: int, interval_s: float = BEAT_S) -> None:
        self._descriptor = descriptor
        self._interval_s = interval_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="headway-heartbeat", daemon=True)

    def start(self) -> None:
        """Beat at once, then again and again."""
        self._thread.start()

    def stop(self) -> None:
        """Beat no more. Calling it twice is fine."""
        self._stopped.set()

    def _beat(self) -> None:
        while True:
            try:
                os.write(self._descriptor, BEAT)
            except OSError:
                return  # nobody listens any more
            if self._stopped.wait(self._interval_s):
                return


class Silence:
    """How long nothing was heard, in time through which the listener itself was awake.

    Args:
        patience_s: Silence that is too long.
        clock: Measures the steps.
    """

    def __init__(self, patience_s: float, clock: Clock) -> None:
        self._patience_s = patience_s
        self._clock = clock
        self._step_s = patience_s / _STEPS
        self._silent_s = 0.0
        self._heard = False

    def heard(self) -> None:
        """There was a sign of life."""
        self._heard = True

    def add(self, passed_s: float) -> bool:
        """A step of the listener took `passed_s`; whether the silence is too long now."""
        if self._heard:
            self._heard = False
            self._silent_s = 0.0
        else:
            # A longer step means that the listener stood still; the other may have done so too.
            self._silent_s += min(passed_s, self._step_s)
        return self._silent_s >= self._patience_s

    async def too_long(self) -> None:
        """Return when the silence is too long."""
        before_ns = self._clock.monotonic_ns()
        while True:
            await asyncio.sleep(self._step_s)
            now_ns = self._clock.monotonic_ns()
            if self.add(s_from_ns(now_ns - before_ns)):
                return
            before_ns = now_ns
