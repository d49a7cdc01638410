"""The slots of a worker: how many requests are in flight, and what carries each of them.

Where the backend offers a direct path and a connection is at hand, a request is a call to send it
and a call when it has ended. Everything else is carried by reusable tasks: one that ends a request
takes the next at once, without going back to the event loop; one with nothing to do sleeps until
`dispatch` hands it a request: when one falls due, when a later turn becomes ready, when the
parent sent more work. Nothing polls.
"""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from headway.backends.backend import Answer, Backend
from headway.backends.direct import direct_path_of
from headway.core.clock import Clock
from headway.load.conversation import TurnRun
from headway.load.direct import DirectRequests
from headway.load.lifecycle import Request, StageFrame
from headway.load.pacing import open_alarm
from headway.load.reporter import Reporter
from headway.load.work import WorkQueue
from headway.records.record import MAX_BODY_CHARS, Failure, Status
from headway.wire.exchange import Exchange

_YIELD_EVERY = 32
"""A backend that never waits would otherwise keep the event loop from timers and messages."""
_PREPARE_AHEAD = 32
_PREPARE_MARGIN_NS = 500_000
"""Content is made ahead only while the next request is at least this far away."""
_MOST_AT_A_STRETCH_NS = 10_000_000
"""Inputs that make content more slowly than it falls due would otherwise keep the event loop for
good: nothing would be reported, and the worker be taken for dead."""
_CANCEL_DEADLINE_S = 2.0
"""A backend that swallows its cancellation is left behind after this."""


class Slots:
    """Carries out the work of one stage on one worker.

    Args:
        queue: What there is to send.
        backend: Carries out each request.
        reporter: Takes each terminal record.
        frame: What the stage's records have in common.
        clock: The host's clock.
    """

    def __init__(
        self,
        queue: WorkQueue,
        backend: Backend,
        reporter: Reporter,
        frame: StageFrame,
        clock: Clock,
    ) -> None:
        self._queue = queue
        self._resolve = backend.resolve
        self._reporter = reporter
        self._frame = frame
        self._now_ns = clock.monotonic_ns
        self._loop = asyncio.get_running_loop()
        queue.on_branch = self._branched
        self._alarm = open_alarm(self._rang, clock)
        self._armed_ns: int | None = None
        self._idle: list[asyncio.Future[Request]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        path = direct_path_of(backend)
        self._direct = None if path is None else DirectRequests(path, self._directly_ended)
        self._waits_for_parent = False
        self._prepares = False
        self._in_flight: set[Request] = set()
        self._limit: int | None = 0
        self._cancelling = False
        self.on_ended: Callable[[], None] | None = None
        """Called whenever requests have ended, when somebody must know at once."""
        self.on_broken: Callable[[BaseException], None] = lambda error: None
        """Called when a slot itself failed: a bug, and never silent (trap 33)."""

    def open(self, limit: int | None) -> None:
        """Allow up to `limit` requests in flight (None: any number) and begin."""
        self._limit = limit
        self.dispatch()

    @property
    def in_flight(self) -> set[Request]:
        """The requests that run now."""
        return self._in_flight

    @property
    def are_settled(self) -> bool:
        """Whether no request runs and none waits."""
        return not self._in_flight and self._queue.is_empty

    def dispatch(self) -> None:
        """Send what can be sent now; then sleep until something falls due."""
        if self._waits_for_parent or self._must_wait():
            return
        queue, in_flight, direct = self._queue, self._in_flight, self._direct
        until_ns = self._now_ns() + _MOST_AT_A_STRETCH_NS
        while self._limit is None or len(in_flight) < self._limit:
            now_ns = self._now_ns()
            if now_ns > until_ns:
                self._loop.call_soon(self.dispatch)
                break
            turn = queue.take(now_ns)
            if turn is None:
                self._arm(now_ns)
                break
            request = Request(turn, self._frame)
            # In flight from here: until a task's next step nothing else knows of the request.
            in_flight.add(request)
            if direct is None or not direct.send(request):
                self._hand_over(request)
        if queue.can_prepare and not self._prepares:
            self._prepares = True
            self._loop.call_soon(self._prepare_next)

    def cancel_unsent(self, turns: Iterable[TurnRun]) -> None:
        """Record turns that will not be sent, and all that would have followed them."""
        now_ns = self._now_ns()
        for turn in turns:
            self._cancel(turn, now_ns)
        self._tell_ended()

    async def cancel_in_flight(self) -> None:
        """Cancel every request in flight; each is recorded with what it had."""
        self._cancelling = True
        self._limit = 0
        self._cancel_direct()
        tasks = [task for task in self._tasks if not task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CANCEL_DEADLINE_S)
        # Handed to a slot that was cancelled before its next step, or deaf to the cancellation.
        for request in list(self._in_flight):
            self._end(request, "cancelled")
        self._tell_ended()

    async def close(self) -> None:
        """End every slot and release the alarm."""
        self._alarm.close()
        await self.cancel_in_flight()

    # --- one request ---------------------------------------------------------------------------

    def _directly_ended(self, requests: list[Request]) -> None:
        """Send on first, then look at what came back, so that no slot waits for that."""
        ended: list[Request] = []
        frees_later = False
        for request in requests:
            if self._is_sent_again(request):
                continue
            ended.append(request)
            if request.turn.leads_on:
                frees_later = True  # Its slot is for its own next turn first (trap 31).
            else:
                self._in_flight.discard(request)
        self.dispatch()
        is_full = self._queue.is_full
        for request in ended:
            self._read(request)
        if frees_later or is_full:
            self.dispatch()
        self._tell_ended()

    def _is_sent_again(self, request: Request) -> bool:
        exchange, direct = request.exchange, self._direct
        if exchange is None or direct is None or exchange.failure is None:
            return False
        if self._cancelling or not direct.must_be_finished(exchange):
            return False
        self._run(self._finish(request, direct, exchange))
        return True

    async def _finish(self, request: Request, direct: DirectRequests, exchange: Exchange) -> None:
        """Send again what `_directly_ended` found to be worth it."""
        try:
            await direct.finish(exchange)
        except asyncio.CancelledError:
            if self._cancelling:
                self._read_cancelled(request)
            raise
        if request.is_ended:
            return  # Given up at the deadline of a cancellation.
        self._read(request)
        self.dispatch()
        self._tell_ended()

    def _read(self, request: Request) -> None:
        direct, exchange = self._direct, request.exchange
        assert direct is not None
        assert exchange is not None
        request.exchange = None  # They know each other, and would be left to the collector.
        try:
            answer = direct.read(exchange, request.progress)
        except Exception as error:  # noqa: BLE001  whatever a backend raises is a record
            answer = Answer(failure=_raised("backend", error))
        self._record(request, "completed" if answer.failure is None else "errored", answer)

    def _cancel_direct(self) -> None:
        if self._direct is None:
            return
        self._direct.hand_over()
        for request in list(self._in_flight):
            if request.exchange is not None and self._direct.abandon(request.exchange):
                self._read_cancelled(request)

    def _read_cancelled(self, request: Request) -> None:
        direct, exchange = self._direct, request.exchange
        assert direct is not None
        assert exchange is not None
        request.exchange = None
        with contextlib.suppress(Exception):  # What can be told of it is kept; it ends cancelled.
            direct.read(exchange, request.progress)
        self._end(request, "cancelled")

    # --- one slot ------------------------------------------------------------------------------

    async def _serve(self, request: Request) -> None:
        served = 0
        while True:
            await self._perform(request)
            served += 1
            if served % _YIELD_EVERY == 0:
                await asyncio.sleep(0)
                if self._reporter.must_wait:
                    await self._reporter.wait_taken()
            request = self._take() or await self._wait_idle()

    def _take(self) -> Request | None:
        """The next request for a task; None when there is none, or none that needs a task."""
        if self._cancelling:
            return None
        while True:
            now_ns = self._now_ns()
            turn = self._queue.take(now_ns)
            if turn is None:
                self._arm(now_ns)
                return None
            request = Request(turn, self._frame)
            self._in_flight.add(request)
            if self._direct is None or not self._direct.send(request):
                return request
            if self._limit is not None and len(self._in_flight) >= self._limit:
                return None

    async def _wait_idle(self) -> Request:
        handed_over: asyncio.Future[Request] = self._loop.create_future()
        self._idle.append(handed_over)
        return await handed_over

    async def _perform(self, request: Request) -> None:
        turn = request.turn
        if turn.input_error is not None:
            self._end(request, "errored", Answer(failure=_raised("inputs", turn.input_error)))
            return
        try:
            answer = await self._resolve(turn.call, turn.history, request.progress)
        except BaseException as error:  # Whatever a backend raises is a record.
            if self._cancelling and isinstance(error, asyncio.CancelledError):
                self._end(request, "cancelled")
                raise
            self._end(request, "errored", Answer(failure=_raised("backend", error)))
            return
        self._end(request, "completed" if answer.failure is None else "errored", answer)

    # --- the end of a request ------------------------------------------------------------------

    def _end(self, request: Request, status: Status, answer: Answer | None = None) -> None:
        if request.is_ended:
            return  # Given up at the deadline of a cancellation, and back after all.
        self._record(request, status, answer)
        self._tell_ended()

    def _record(self, request: Request, status: Status, answer: Answer | None) -> None:
        """Write the request down; what waits for it goes on, or is lost with it."""
        now_ns = request.progress.done_ns or self._now_ns()
        failure = None if answer is None else answer.failure
        self._in_flight.discard(request)
        self._write(request, status, now_ns, failure)
        turn = request.turn
        if not turn.leads_on:
            return
        if status == "completed" and answer is not None:
            self._go_on(turn.conversation.turns_after(turn, answer, now_ns), now_ns)
        else:
            self._cancel_following(turn, now_ns)

    def _write(
        self, request: Request, status: Status, now_ns: int, failure: Failure | None = None
    ) -> None:
        record = request.end(status, now_ns, failure)
        conversation = request.turn.conversation
        conversation.left -= 1
        is_over = conversation.left == 0
        self._reporter.ended(request, record, is_over)
        if is_over:
            self._queue.conversation_ended()

    def _tell_ended(self) -> None:
        if self.on_ended is not None:
            self.on_ended()

    def _go_on(self, following: list[TurnRun], now_ns: int) -> None:
        if self._queue.is_cut or self._cancelling:
            for turn in following:
                self._cancel(turn, now_ns)
            return
        # Whoever takes next arms the alarm for it: this slot when it goes idle, or the alarm that
        # is set already when this slot takes an arrival before it has rung. Where there are more
        # turns than one, the queue calls for other slots.
        self._queue.add_ready(following)

    def _cancel(self, turn: TurnRun, now_ns: int) -> None:
        self._write(Request(turn, self._frame), "cancelled", now_ns)
        self._cancel_following(turn, now_ns)

    def _cancel_following(self, turn: TurnRun, now_ns: int) -> None:
        for lost in turn.conversation.turns_lost_with(turn, now_ns):
            self._write(Request(lost, self._frame), "cancelled", now_ns)

    # --- waking --------------------------------------------------------------------------------

    def _branched(self) -> None:
        # Afterwards: the slot at hand takes the first of the turns itself.
        self._loop.call_soon(self.dispatch)

    def _rang(self) -> None:
        self._armed_ns = None
        self.dispatch()

    def _must_wait(self) -> bool:
        """Whether the parent reads too slowly; then sending goes on when it has caught up."""
        if not self._reporter.must_wait or self._cancelling:
            return False
        self._waits_for_parent = True
        self._run(self._wait_for_parent())
        return True

    async def _wait_for_parent(self) -> None:
        try:
            await self._reporter.wait_taken()
        finally:
            self._waits_for_parent = False
        self.dispatch()

    def _hand_over(self, request: Request) -> None:
        while self._idle:
            waiting = self._idle.pop()
            if not waiting.done():
                waiting.set_result(request)
                return
        self._run(self._serve(request))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._slot_ended)

    def _slot_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.on_broken(error)

    def _arm(self, refused_ns: int) -> None:
        """Wake when the next request falls due; at `refused_ns` there was nothing to take."""
        due_ns = self._queue.next_due_ns()
        # What was due already and refused waits for something other than time.
        if due_ns is not None and due_ns > refused_ns and due_ns != self._armed_ns:
            self._armed_ns = due_ns
            self._alarm.set(due_ns)

    def _prepare_next(self) -> None:
        self._prepares = False
        due_ns = self._queue.next_due_ns()
        far_away = due_ns is None or due_ns - self._now_ns() > _PREPARE_MARGIN_NS
        if far_away and self._queue.prepare_one(_PREPARE_AHEAD):
            self._prepares = True
            self._loop.call_soon(self._prepare_next)


def _raised(where: str, error: BaseException) -> Failure:
    text = "".join(traceback.format_exception(error))
    return Failure(
        category="backend",
        message=f"the {where} raised {type(error).__name__}: {error}",
        body=text[-MAX_BODY_CHARS:],
    )
