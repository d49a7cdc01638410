"""Measures how late the event loop runs its timers: the first sign of blocking code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headway.core.clock import Clock, s_from_ns

_INTERVAL_S = 0.5


class LoopLag:
    """Sleeps, and tells by how much it overslept.

    Args:
        clock: Monotonic time.
        observe: Given each lag in seconds.
    """

    def __init__(self, clock: Clock, observe: Callable[[float], None]) -> None:
        self._clock = clock
        self._observe = observe

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            before_ns = self._clock.monotonic_ns()
            await asyncio.sleep(_INTERVAL_S)
            slept_s = s_from_ns(self._clock.monotonic_ns() - before_ns)
            self._observe(max(0.0, slept_s - _INTERVAL_S))
