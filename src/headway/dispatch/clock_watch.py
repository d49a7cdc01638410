"""Notices that the wall clock was set back, and lets nothing wait for the time to come again."""

from __future__ import annotations

import logging

from headway.core.clock import Clock, ns_from_s
from headway.dispatch.doorbell import WORK, Doorbell
from headway.store.store import Store

_log = logging.getLogger(__name__)

_STEP_NS = ns_from_s(1.0)
"""Less than this is slewing, and costs a retry less than that."""
_NS_PER_US = 1000


class ClockWatch:
    """Compares the wall clock with the monotonic one.

    Leases and timeouts are monotonic. Backoff is not: it has to outlive the host's boot, so its end
    is stored as a time of day.

    Args:
        store: Keeps the backoffs.
        doorbell: Rung when jobs are ready.
        clock: The clock that is watched.
    """

    def __init__(self, store: Store, doorbell: Doorbell, clock: Clock) -> None:
        self._store = store
        self._doorbell = doorbell
        self._clock = clock
        self._offset_ns: int | None = None

    async def step(self) -> float | None:
        """One look; the first one stands for whatever happened while no worker ran."""
        before_ns, offset_ns = self._offset_ns, self._offset()
        if before_ns is None or offset_ns < before_ns - _STEP_NS:
            ended = await self._store.end_future_backoffs()
            if ended:
                _log.warning("the clock was set back; %d jobs are not kept waiting for it", ended)
                self._doorbell.ring(WORK)
        self._offset_ns = offset_ns
        return None

    def _offset(self) -> int:
        since_epoch_us = round(self._clock.now().timestamp() * 1_000_000)
        return since_epoch_us * _NS_PER_US - self._clock.monotonic_ns()
