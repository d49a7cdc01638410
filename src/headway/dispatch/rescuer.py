"""Takes over attempts whose owner died or went silent."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from headway.dispatch.doorbell import WORK, Doorbell, job_topic
from headway.dispatch.metrics import AttemptMetrics
from headway.dispatch.owner import is_dead
from headway.store.store import Store

_log = logging.getLogger(__name__)


class Rescuer:
    """Every worker rescues; the store makes sure that each attempt is rescued once.

    Args:
        store: Knows the owners.
        doorbell: Rung when jobs are ready again.
        metrics: Counts.
        kill_stale: Kills what dead owners have left running.
    """

    def __init__(
        self,
        store: Store,
        doorbell: Doorbell,
        metrics: AttemptMetrics,
        kill_stale: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store
        self._doorbell = doorbell
        self._metrics = metrics
        self._kill_stale = kill_stale

    async def step(self) -> float | None:
        """One look. It writes only when there is something to rescue."""
        dead = [owner for owner in await self._store.owners() if is_dead(owner)]
        if not dead and not await self._store.any_lease_over():
            return None
        if dead:
            # A dead worker's forkserver ends its jobs, but may be slow, or stand still itself: the
            # next attempt must not begin beside what is left of the last.
            await self._kill_stale()
        rescued = await self._store.rescue(dead)
        self._metrics.rescued(rescued)
        for each in rescued:
            _log.warning(
                "job %s: attempt %d was rescued, %s; the job is %s",
                each.claim.job_id,
                each.claim.attempt,
                each.reason,
                each.state,
            )
        self._doorbell.ring(WORK, *(job_topic(each.claim.job_id) for each in rescued))
        return None
