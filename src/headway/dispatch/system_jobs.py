"""Periodic duties of the server itself, by cron expression, each run by one worker (J19)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from cronsim import CronSim, CronSimError

from headway.core.clock import Clock
from headway.core.errors import ConfigError
from headway.dispatch.named_lease import NamedLease
from headway.store.store import Store

_log = logging.getLogger(__name__)

_RENEWALS_PER_LEASE = 3
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class SystemJob:
    """A duty.

    Attributes:
        name: Its name in the store.
        cron: When it runs, in UTC.
        run: Does it once; may be run again when a worker dies in the middle.
    """

    name: str
    cron: str
    run: Callable[[], Awaitable[None]]

    def __post_init__(self) -> None:
        try:
            CronSim(self.cron, datetime(2000, 1, 1))  # noqa: DTZ001 - only its syntax is tried
        except CronSimError as error:
            raise ConfigError(
                f"{self.name}: {self.cron!r} is no cron expression: {error}"
            ) from error


class SystemJobs:
    """Runs each system job once for each due time, in whatever worker holds its lease.

    The lease is held only while the job runs, and the due time is recorded after it ran: when the
    worker is killed in the middle, the next one runs it again (trap 23: periodic jobs that pinned
    a worker never came back after a kill).

    Args:
        store: Remembers what ran.
        jobs: The duties.
        lease: Makes the lease of a duty by its name.
        clock: Wall-clock time decides.
    """

    def __init__(
        self,
        store: Store,
        jobs: list[SystemJob],
        lease: Callable[[str], NamedLease],
        clock: Clock,
    ) -> None:
        self._store = store
        self._jobs = jobs
        self._lease = lease
        self._clock = clock
        self._since = clock.now()

    async def step(self) -> float | None:
        """Run what is due; seconds until something will be."""
        waits = [await self._step_one(job) for job in self._jobs]
        return min(waits, default=None)

    async def _step_one(self, job: SystemJob) -> float:
        now = self._clock.now()
        last = await self._store.last_period(job.name) or self._since
        if last > now:
            # The clock was set back: without this the duty would rest until its time comes again.
            await self._store.record_period(job.name, now)
        due = latest_due(job.cron, last, now)
        if due is not None:
            await self._run(job, due)
        return (next_due(job.cron, self._clock.now()) - self._clock.now()).total_seconds()

    async def _run(self, job: SystemJob, due: datetime) -> None:
        lease = self._lease(f"system:{job.name}")
        if not await lease.take():
            return
        async with asyncio.TaskGroup() as group:
            renewing = group.create_task(_keep(lease))
            try:
                await job.run()
            except Exception:  # noqa: BLE001 - whatever a duty raises
                # A duty that fails is tried at its next time; it must not stop the worker.
                _log.exception("the system job %s failed", job.name)
            finally:
                renewing.cancel()
        await self._store.record_period(job.name, due)
        await lease.give_up()


async def _keep(lease: NamedLease) -> None:
    while True:
        await asyncio.sleep(lease.lease_s / _RENEWALS_PER_LEASE)
        await lease.take()


def next_due(cron: str, after: datetime) -> datetime:
    """The first due time after `after`."""
    return next(CronSim(cron, after))


def latest_due(cron: str, after: datetime, now: datetime) -> datetime | None:
    """The latest due time in (after, now]; None when there is none.

    Periods that passed while no worker ran are not made up one by one: the latest stands for all.
    """
    # Backwards from now: a server that was off for a year must not count through every minute.
    # CronSim leaves out the moment it starts from, hence the step past it.
    latest = next(CronSim(cron, now + _INSTANT, reverse=True))
    return latest if latest > after else None
