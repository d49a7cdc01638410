"""Awaits the preconditions of waiting jobs, without a slot and without a thread for any of them.

The wait is durable: the store says which jobs wait, since when and for what; this only looks. Of
several workers, the one with the lease looks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

import msgspec

from headway.core.errors import StoreUnavailable
from headway.core.failure import ErrorInfo
from headway.core.states import Outcome
from headway.dispatch.doorbell import WORK, Doorbell, job_topic
from headway.dispatch.named_lease import NamedLease
from headway.dispatch.preconditions import Look, Looker, Surroundings, looker
from headway.jobs.describe import describe
from headway.store.jobs import JobRow, Precondition
from headway.store.waits import Waiting

_log = logging.getLogger(__name__)

_LOOKS_AT_ONCE = 32
_LOOK_LIMIT_S = 60.0
_AFTER_FAILURE_S = 1.0


class WaitingRoom:
    """One task for each waiting job, that sleeps between looks.

    Args:
        around: What conditions look at.
        doorbell: Rung when a job may queue, has failed, or waits for something else.
        lease: Held by the one worker that looks.
    """

    def __init__(self, around: Surroundings, doorbell: Doorbell, lease: NamedLease) -> None:
        self._around = around
        self._doorbell = doorbell
        self._lease = lease
        self._waits: dict[str, asyncio.Task[None]] = {}
        self._looks = asyncio.Semaphore(_LOOKS_AT_ONCE)

    async def step(self) -> float | None:
        """Begin to look for the jobs that wait now; stop for those that do not any more."""
        waiting = await self._around.store.waiting()
        if not waiting or not await self._lease.take():
            self.close()
            return None
        ids = {each.job.id for each in waiting}
        for job_id in self._waits.keys() - ids:
            self._waits.pop(job_id).cancel()
        for each in waiting:
            if each.job.id not in self._waits:
                self._waits[each.job.id] = asyncio.create_task(self._attend(each))
        return self._lease.lease_s / 3

    def close(self) -> None:
        """Look no more; the jobs go on waiting in the store."""
        for task in self._waits.values():
            task.cancel()
        self._waits.clear()

    async def _attend(self, waiting: Waiting) -> None:
        """Wait for a job's conditions, one after another, then let it queue or fail it."""
        job_id, store = waiting.job.id, self._around.store
        failure = await self._wait_for_all(waiting)
        if failure is None:
            await _until_stored(lambda: store.preconditions_met(job_id))
        else:
            outcome, error = failure
            await _until_stored(lambda: store.precondition_failed(job_id, outcome, error))
        self._doorbell.ring(WORK, job_topic(job_id))

    async def _wait_for_all(self, waiting: Waiting) -> tuple[Outcome, ErrorInfo] | None:
        """None when every condition was met, else why the job fails."""
        for condition in waiting.preconditions:
            try:
                async with asyncio.timeout(self._left_s(waiting, condition)) as limit:
                    await self._wait_for(waiting.job, condition)
            except TimeoutError as error:
                if not limit.expired():
                    return Outcome.FAILED, describe(error)
                message = f"{condition.name} was not met within {condition.timeout_s:g} s"
                return Outcome.TIMED_OUT, ErrorInfo(type="PreconditionTimedOut", message=message)
            except Exception as error:  # noqa: BLE001 - an author's code; it fails its job only
                return Outcome.FAILED, describe(error)
        return None

    def _left_s(self, waiting: Waiting, condition: Precondition) -> float | None:
        """What is left of the limit; it began when the job began to wait, not this process."""
        if condition.timeout_s is None:
            return None
        waited_s = (self._around.clock.now() - waiting.since).total_seconds()
        return max(0.0, condition.timeout_s - waited_s)

    async def _wait_for(self, job: JobRow, condition: Precondition) -> None:
        arguments = msgspec.json.decode(condition.arguments_json)
        around = replace(self._around, workspace=job.workspace)
        look = await looker(around, condition.name, arguments)
        described = None
        while (seen := await self._look(look)).waiting_for is not None:
            if seen.waiting_for != described:
                described = seen.waiting_for
                await self._describe(job.id, described)
            await asyncio.sleep(seen.again_after_s)

    async def _look(self, look: Looker) -> Look:
        async with self._looks:
            try:
                async with asyncio.timeout(_LOOK_LIMIT_S) as limit:
                    return await look()
            except TimeoutError:
                if not limit.expired():
                    raise
                return Look(f"looking took longer than {_LOOK_LIMIT_S:g} s")
            except StoreUnavailable as error:
                return Look(str(error))

    async def _describe(self, job_id: str, detail: str) -> None:
        try:
            await self._around.store.describe_wait(job_id, detail)
        except StoreUnavailable as error:
            _log.warning("job %s: what it waits for was not stored: %s", job_id, error)
        self._doorbell.ring(job_topic(job_id))


async def _until_stored(write: Callable[[], Awaitable[bool]]) -> None:
    """Try until the store is there; the answer does not matter: the job may have been cancelled."""
    while True:
        try:
            await write()
        except StoreUnavailable:
            await asyncio.sleep(_AFTER_FAILURE_S)
        else:
            return
