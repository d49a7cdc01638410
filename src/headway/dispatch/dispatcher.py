"""Claims jobs for free slots, runs them, keeps their leases, stops them, and ends in order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from headway.core.states import Lane
from headway.dispatch.attempt_run import AttemptRun, RunServices, Stop
from headway.dispatch.doorbell import CANCEL, WORK
from headway.dispatch.lanes import LaneSlots
from headway.dispatch.loop import Loop, run_all
from headway.store.attempts import Claim, ClaimedJob

_log = logging.getLogger(__name__)

_POLL_S = 1.0
"""Backs up the doorbells: a lost ring costs at most this."""
_TIMER_LOOK_S = 0.05
"""After a claim that gave jobs, when to look for the next timer unless something wakes before."""
_UNKNOWN_CANCEL_S = 0.05
_RENEWALS_PER_LEASE = 4
_GIVE_BACK_S = 10.0
"""For killing the trees and storing that the attempts are given back."""


@dataclass(frozen=True, slots=True)
class DispatchSettings:
    """How a dispatcher works.

    Attributes:
        owner: Its name in the store.
        lease_s: Length of a lease; a worker that is silent for so long loses its jobs.
    """

    owner: str
    lease_s: float = 15.0


class Dispatcher:
    """Runs the jobs of some lanes in this process.

    Args:
        services: What its attempts share.
        lanes: The slots of each lane it serves.
        settings: See `DispatchSettings`.
    """

    def __init__(
        self, services: RunServices, lanes: Mapping[Lane, LaneSlots], settings: DispatchSettings
    ) -> None:
        self._services = services
        self._lanes = lanes
        self._settings = settings
        self._runs: dict[Claim, AttemptRun] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._claim_asked = False
        self._give_back_grace_s: float | None = None
        bell = services.doorbell.listen
        self._claiming = Loop("claiming", self._claim, _POLL_S, bell(WORK))
        self._cancelling = Loop("cancelling", self._cancel, _POLL_S, bell(CANCEL))
        self._renewing = Loop(
            "renewing", self._renew, settings.lease_s / _RENEWALS_PER_LEASE, bell()
        )

    @property
    def running(self) -> int:
        """Attempts that have not ended."""
        return len(self._runs)

    def report_lanes(self) -> None:
        """Tell the metrics how the slots stand."""
        for lane, slots in self._lanes.items():
            self._services.metrics.lane(lane, slots)

    def wake(self) -> None:
        """Look for work now."""
        self._claiming.wake()

    async def run(self) -> None:
        """Work until `stop`; raises what a loop could not survive."""
        await run_all([self._claiming, self._cancelling, self._renewing])

    async def drain(self, limit_s: float, grace_s: float) -> None:
        """Stop claiming; let what runs finish, and give back what has not after `limit_s`.

        `run` goes on meanwhile, to renew leases and to hear cancels; call `stop` afterwards.
        Cancelling the call and calling again with shorter times is how a second SIGTERM works.

        Args:
            limit_s: For attempts to finish by themselves.
            grace_s: For those that did not, between SIGTERM and SIGKILL.
        """
        self._claiming.stop()
        self._give_back_grace_s = grace_s
        if await self._wait_idle(limit_s):
            return
        for run in list(self._runs.values()):
            run.stop(Stop.DRAIN, grace_s)
        if not await self._wait_idle(grace_s + _GIVE_BACK_S):
            _log.error("%d attempts could not be given back; they will be rescued", self.running)

    async def _wait_idle(self, timeout_s: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        return self._idle.is_set()

    def stop(self) -> None:
        """End the loops. Calling it twice is fine."""
        for loop in (self._claiming, self._cancelling, self._renewing):
            loop.stop()

    # --- the loops' turns ---

    async def _claim(self) -> float | None:
        """Fill the free slots."""
        wanted: dict[str, int] = {
            lane: free for lane, slots in self._lanes.items() if (free := slots.free()) > 0
        }
        if not wanted:
            return None  # a slot that frees wakes this loop
        claimed = await self._claimed(wanted)
        for each in claimed:
            self._begin(each)
        self._forget_admitted(wanted, claimed)
        if claimed:
            # Slots may be left, but the next end wakes a busy lane: asking for the timer after each
            # claim kept the next one waiting.
            return _TIMER_LOOK_S
        return await self._seconds_to_next_timer()

    async def _claimed(self, wanted: Mapping[str, int]) -> list[ClaimedJob]:
        """What the store gives; a drain waits for its answer, or jobs would come behind it."""
        settings = self._settings
        self._claim_asked = True
        self._idle.clear()
        try:
            return await self._services.store.claim(settings.owner, wanted, settings.lease_s)
        finally:
            self._claim_asked = False
            # What was claimed begins before anybody who waits for this wakes.
            asyncio.get_running_loop().call_soon(self._tell_idle)

    def _tell_idle(self) -> None:
        if not self._runs and not self._claim_asked:
            self._idle.set()

    def _forget_admitted(self, wanted: Mapping[str, int], claimed: list[ClaimedJob]) -> None:
        got = Counter(each.job.lane for each in claimed)
        for lane, count in wanted.items():
            if got[lane] < count:
                self._lanes[Lane(lane)].forget_admitted()

    async def _cancel(self) -> float | None:
        """Stop what somebody wants stopped."""
        if not self._runs:
            return None
        unknown = False
        for claim in await self._services.store.cancel_requested(self._settings.owner):
            run = self._runs.get(claim)
            if run is None:
                unknown = True
            else:
                run.stop(Stop.CANCEL)
        # The store may already show a claim whose answer is still on its way to this process.
        return _UNKNOWN_CANCEL_S if unknown else None

    async def _renew(self) -> float | None:
        await self._services.leases.renew()
        return None

    # --- attempts ---

    def _begin(self, claimed: ClaimedJob) -> None:
        lane = Lane(claimed.job.lane)
        self._lanes[lane].take()
        self._idle.clear()
        run = AttemptRun(claimed, self._services, lambda: self._slot_free(lane))
        self._runs[claimed.claim] = run
        task = asyncio.create_task(run.run(), name=f"job-{claimed.job.id}")
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._ended(claimed.claim, done))
        if self._give_back_grace_s is not None:
            # The answer to a claim that was asked for before the drain began.
            run.stop(Stop.DRAIN, self._give_back_grace_s)

    def _slot_free(self, lane: Lane) -> None:
        self._lanes[lane].give_back()
        self._claiming.wake()

    def _ended(self, claim: Claim, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._runs.pop(claim, None)
        self._tell_idle()
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("job %s: its end could not be stored", claim.job_id, exc_info=error)

    async def _seconds_to_next_timer(self) -> float | None:
        """Until the next `scheduled` or `backoff` job is due."""
        at = await self._services.store.next_run_at()
        if at is None:
            return None
        return max(0.0, (at - self._services.clock.now()).total_seconds())
