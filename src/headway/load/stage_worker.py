"""One stage on one worker: everything that is fresh for each stage, from begin to done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headway.backends.backend import Backend
from headway.core.clock import NS_PER_S, Clock
from headway.load.goodness import Judge
from headway.load.inputs.conversation import Inputs
from headway.load.lifecycle import StageFrame
from headway.load.messages import Arrivals, BeginStage, Drain, Grants, StageDone, Want
from headway.load.reporter import Outbox, Reporter
from headway.load.slots import Slots
from headway.load.work import WorkQueue

_ERROR_FLUSH_NS = 5_000_000
"""With an error rule on, an error waits no longer than this for its report."""


class StageServices:
    """What a worker lends to each stage."""

    def __init__(
        self,
        backend: Backend,
        outbox: Outbox,
        clock: Clock,
        on_broken: Callable[[BaseException], None],
    ) -> None:
        self.backend = backend
        self.outbox = outbox
        self.clock = clock
        self.on_broken = on_broken


class StageWorker:
    """Runs one stage: feeds the slots, reports, and says when all has ended."""

    def __init__(
        self,
        begin: BeginStage,
        inputs: Inputs,
        frame: StageFrame,
        services: StageServices,
        observe: bool,
        judge: Judge | None = None,
    ) -> None:
        self._begin = begin
        self._services = services
        self._now_ns = services.clock.monotonic_ns
        self._queue = WorkQueue(inputs, begin.open_conversations, begin.start_ns, begin.end_ns)
        self._reporter = Reporter(frame, services.outbox, observe, judge)
        self._slots = Slots(self._queue, services.backend, self._reporter, frame, services.clock)
        self._queue.on_low = self._want_grants
        if begin.flush_on_error:
            self._slots.on_ended = self._requests_ended
        self._slots.on_broken = services.on_broken
        self._flushed_ns = 0
        self._drain: Drain | None = None
        self._cancel_timer: asyncio.TimerHandle | None = None
        self._cancelling: asyncio.Task[None] | None = None
        self.is_done = False
        self._slots.open(begin.slots)

    @property
    def stage(self) -> int:
        """The stage's number."""
        return self._begin.stage

    @property
    def in_flight(self) -> int:
        """Requests in flight now."""
        return len(self._slots.in_flight)

    def take_arrivals(self, message: Arrivals) -> None:
        """Open loop: more arrivals."""
        self._queue.add_arrivals(message.first, message.step, message.due_ns)
        self._slots.dispatch()

    def take_grants(self, message: Grants) -> None:
        """Closed loop: more arrivals may begin."""
        self._queue.add_grants(message.first, message.count)
        self._slots.dispatch()

    def drain(self, message: Drain) -> None:
        """Finish; with a cut, end sending there and cancel what is left at `cancel_ns`."""
        self._drain = message
        self._slots.on_ended = self._requests_ended
        if message.cut_ns is not None:
            self._slots.cancel_unsent(self._queue.cut(message.cut_ns))
        if message.cancel_ns is not None:
            self._cancel_at(message.cancel_ns)
        self._requests_ended()

    def flush(self) -> None:
        """Report what happened since the last time."""
        self._flushed_ns = self._now_ns()
        if self._queue.dropped:
            self._reporter.dropped(self._queue.dropped, self._queue.exhausted_at)
            self._queue.dropped.clear()
        self._reporter.in_flight = len(self._slots.in_flight)
        self._reporter.watched(self._slots.in_flight, self._flushed_ns)
        self._reporter.flush()
        self._finish_when_settled()

    async def close(self) -> None:
        """End whatever still runs; each request is recorded."""
        if self._cancel_timer is not None:
            self._cancel_timer.cancel()
        await self._slots.close()
        self.flush()

    def _requests_ended(self) -> None:
        if self._begin.flush_on_error and self._reporter.errors_waiting:
            if self._now_ns() - self._flushed_ns > _ERROR_FLUSH_NS:
                self.flush()
        elif self._drain is not None and self._slots.are_settled:
            self.flush()

    def _want_grants(self) -> None:
        if self._drain is None:
            self._services.outbox.send(Want(self._begin.stage))

    def _cancel_at(self, cancel_ns: int) -> None:
        if self._cancel_timer is not None:
            self._cancel_timer.cancel()
        wait_s = max(0.0, (cancel_ns - self._now_ns()) / NS_PER_S)
        self._cancel_timer = asyncio.get_running_loop().call_later(wait_s, self._cancel_now)

    def _cancel_now(self) -> None:
        if self._cancelling is None:
            loop = asyncio.get_running_loop()
            self._cancelling = loop.create_task(self._slots.cancel_in_flight())

    def _finish_when_settled(self) -> None:
        if self._drain is None or self.is_done or not self._slots.are_settled:
            return
        self.is_done = True
        self._services.outbox.send(StageDone(self._begin.stage))
