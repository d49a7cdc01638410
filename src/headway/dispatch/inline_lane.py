"""The inline lane: light operations in the API's process, with an honest limit (J4)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from headway.core.states import Lane
from headway.dispatch.dispatcher import Dispatcher, DispatchSettings
from headway.dispatch.inline_attempt import InlineSupervisor
from headway.dispatch.inline_output import OutputSwitch
from headway.dispatch.lane_host import LaneHost
from headway.dispatch.lanes import LaneSize, LaneSlots
from headway.dispatch.owner import owner_of_this_process
from headway.jobs.environment import EnvironmentPolicy
from headway.jobs.registry import Registry

LIMIT = 128
_RETRY_AFTER_S = 1.0


@dataclass(frozen=True, slots=True)
class InlineSettings:
    """How the lane works.

    Attributes:
        limit: Attempts at a time, and so threads.
        lease_s: As of the worker.
        log_bytes: Size at which an attempt's log is cut; None: the default.
        result_bytes: Largest result that is kept; None: the default.
        environment: What a job's environment takes over from the server's.
    """

    limit: int = LIMIT
    lease_s: float = 15.0
    log_bytes: int | None = None
    result_bytes: int | None = None
    environment: EnvironmentPolicy = field(default_factory=EnvironmentPolicy)


@dataclass(frozen=True, slots=True)
class Busy:
    """The lane is full: answer 503 with Retry-After, never queue in silence."""

    retry_after_s: float


class Admission:
    """Places kept for jobs that are being submitted; use it around `Store.submit`.

    Args:
        lane: Whose places.
        count: How many jobs.
    """

    def __init__(self, lane: InlineLane, count: int) -> None:
        self._lane = lane
        self._count = count

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lane.submitted(self._count, failed=error is not None)


class InlineLane:
    """Claims and runs the inline lane's jobs. They are as durable as any other.

    Args:
        host: What it shares with the rest of its process.
        registry: The operations.
        settings: See `InlineSettings`.
    """

    def __init__(
        self, host: LaneHost, registry: Registry, settings: InlineSettings | None = None
    ) -> None:
        self._settings = settings = settings or InlineSettings()
        self._supervisor = InlineSupervisor(
            registry, host.state_dir, host.clock, settings.environment
        )
        self.owner = str(owner_of_this_process("api"))
        services = host.services(
            self.owner,
            self._supervisor,
            settings.lease_s,
            settings.log_bytes,
            settings.result_bytes,
        )
        # All slots are "burst", allowed as far as no abandoned thread still holds its place.
        self._slots = LaneSlots(LaneSize(0, settings.limit), self._places)
        self._dispatcher = Dispatcher(
            services,
            {Lane.INLINE: self._slots},
            DispatchSettings(owner=self.owner, lease_s=settings.lease_s),
        )
        self._submitting = 0
        self._metrics = host.metrics
        self._output = OutputSwitch()
        self._running: asyncio.Task[None] | None = None

    def admit(self, count: int) -> Admission | Busy:
        """Keep places for `count` jobs that are about to be submitted, or refuse.

        admission = lane.admit(1)
        if isinstance(admission, Busy): ...  # 503, Retry-After
        with admission:
            await store.submit(...)
        """
        if self._promised() + count > self._settings.limit:
            self._metrics.rejected("inline_full", count)
            return Busy(retry_after_s=_RETRY_AFTER_S)
        self._submitting += count
        return Admission(self, count)

    def submitted(self, count: int, failed: bool) -> None:
        """Jobs with kept places are in the store now, or will not come."""
        self._submitting -= count
        if not failed:
            self._slots.admit(count)

    def report(self) -> None:
        """Tell the metrics how the lane stands; called when they are read."""
        self._dispatcher.report_lanes()
        self._metrics.inline_busy(self._supervisor.busy)

    def _promised(self) -> int:
        return max(self._slots.promised, self._supervisor.busy) + self._submitting

    def _places(self) -> int:
        return max(0, self._settings.limit - self._supervisor.busy)

    async def open(self) -> None:
        """Remove what a server that was killed has left, and begin to run jobs.

        Only one server at a time has the state directory.
        """
        await asyncio.to_thread(self._supervisor.remove_stale)
        self._output.open()
        self._running = asyncio.create_task(self._dispatcher.run(), name="headway-inline-lane")

    async def close(self, limit_s: float = 0.0, grace_s: float = 1.0) -> None:
        """Stop claiming, finish or give back what runs. Closing twice is fine."""
        if self._running is not None:
            await self._dispatcher.drain(limit_s, grace_s)
            self._dispatcher.stop()
            await self._running
            self._running = None
        self._output.close()
