"""One stage, as the parent runs it: barrier, start, handing out, stop rules, drain, end.

Everything here is fresh for each stage (trap 39). The loop wakes for reports, for deaths, for a
request to stop, and for time: no way to end a stage depends on a request event (trap 32).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import islice

import msgspec

from headway.core.clock import Clock, ns_from_s, s_from_ns
from headway.core.errors import WorkerLost
from headway.load.arrivals import RampArrivals, TraceArrivals, arrival_rng
from headway.load.fleet import Barrier
from headway.load.handout import (
    ClosedLoopHandout,
    Handout,
    HandoutLimits,
    OpenLoopHandout,
    divide,
)
from headway.load.inputs import Inputs, Recipe, open_inputs
from headway.load.journal import Journal
from headway.load.ledger import Ledger, Unfinished
from headway.load.live import LiveCounters
from headway.load.messages import (
    BeginStage,
    Broken,
    Drain,
    FromWorker,
    PrepareStage,
    Report,
    Sample,
    StageDone,
    StageReady,
    Want,
)
from headway.load.orphans import OrphanRecords
from headway.load.results import StageResult, stage_result
from headway.load.saturation import Saturation
from headway.load.spec import RunSpec
from headway.load.stages import StagePlan
from headway.load.stop_rules import RuleFactory, Stop, StopRules, rules_for
from headway.load.tally import StageTally
from headway.load.worker_process import WorkerProcess
from headway.records.record import (
    Note,
    RequestRecord,
    StageEnded,
    StageStarted,
    WorkerDied,
)

_TICK_S = 0.1
_PREPARE_DEADLINE_S = 60.0
_DRAIN_MARGIN_S = 5.0
"""What a worker may take beyond the grace period before it counts as lost."""
_OWN_BATCH = 1_000


class RunContext(msgspec.Struct, frozen=True, kw_only=True):
    """What every stage of a run shares."""

    spec: RunSpec
    recipe: Recipe
    barrier: Barrier
    journal: Journal
    clock: Clock
    stages: int
    start_lead_s: float
    rules: tuple[RuleFactory, ...] = ()


class StageRun:
    """Runs one stage.

    Args:
        number: The stage's number, from 0.
        plan: What it does.
        context: What it shares with the other stages.
    """

    def __init__(self, number: int, plan: StagePlan, context: RunContext) -> None:
        self._number = number
        self._plan = plan
        self._context = context
        self._spec = context.spec
        self._now_ns = context.clock.monotonic_ns
        self._wake = asyncio.Event()
        self._ledger = Ledger()
        self._tally = StageTally(LiveCounters(number, context.stages, plan))
        self._rules: StopRules = rules_for(
            context.spec.limits, plan.max_seconds, [*context.rules, *_saturation(plan)]
        )
        self._active: dict[int, WorkerProcess] = {}
        self._awaited: set[int] = set()
        """Workers that have not said StageReady, later StageDone."""
        self._start_ns = 0
        self._started: StageStarted | None = None
        self._limits = HandoutLimits(None, None, 1.0)
        self._handout: Handout | None = None
        self._orphans: OrphanRecords | None = None
        self._exhausted = False
        self._stop: Stop | None = None
        self._draining = False
        self._cut_ns: int | None = None
        self._kill_at_ns: int | None = None
        self._stop_asked = False
        self._aborted = False
        self._error: Exception | None = None

    # --- from outside --------------------------------------------------------------------------

    def request_stop(self) -> None:
        """End the stage in peace: no new requests, the grace period for those in flight."""
        self._stop_asked = True
        self._wake.set()

    def abort(self) -> None:
        """End the stage at once; whoever calls this kills the workers."""
        self._aborted = True
        self._wake.set()

    def worker_said(self, worker: WorkerProcess, message: FromWorker) -> None:
        """A worker of the fleet sent a message."""
        try:
            self._take(worker, message)
        except Exception as error:  # noqa: BLE001  raised where the stage waits (trap 33)
            self._fail(error)

    def worker_lost(self, worker: WorkerProcess, cause: str) -> None:
        """A worker died; all that it had sent was heard."""
        try:
            self._lose(worker, cause)
        except Exception as error:  # noqa: BLE001  raised where the stage waits (trap 33)
            self._fail(error)

    # --- the stage -----------------------------------------------------------------------------

    async def run(self) -> StageResult:
        """Run the stage to its end.

        Raises:
            WorkerLost: no worker was there to begin with.
            DiskError: a record could not be written.
        """
        await self._barrier()
        handout = self._begin()
        while not (self._aborted or (self._draining and not self._awaited)):
            self._step(handout)
            self._context.journal.observer.progress(self._tally.snapshot(self._elapsed_s()))
            await self._sleep()
        if self._aborted:
            await self._context.barrier.fleet.kill()
            self._write_off()
        return self._finish(handout)

    async def _barrier(self) -> None:
        workers = self._context.barrier.fleet.workers
        count = _usable(len(workers), self._plan.streams, self._spec.open_conversations)
        self._active = {worker.number: worker for worker in workers[:count]}
        self._awaited = set(self._active)
        for worker in self._active.values():
            worker.send(PrepareStage(self._number))
        deadline_ns = self._now_ns() + ns_from_s(_PREPARE_DEADLINE_S)
        while self._awaited and not self._aborted:
            if self._now_ns() > deadline_ns:
                raise WorkerLost("a load worker did not open the inputs of the stage in time")
            await self._wait(_TICK_S)
        if not self._active:
            raise WorkerLost("no load worker was left to begin the stage")

    def _begin(self) -> Handout:
        plan = self._plan
        self._start_ns = self._now_ns() + ns_from_s(self._context.start_lead_s)
        end_ns = None
        if plan.max_seconds is not None:
            end_ns = self._start_ns + ns_from_s(plan.max_seconds)
        self._limits = HandoutLimits(plan.max_arrivals, end_ns, self._spec.handout_ahead_s)
        self._orphans = OrphanRecords(self._number, self._start_ns, self._open_inputs)
        self._handout = handout = self._make_handout()
        self._started = self._started_event()
        self._context.journal.event(self._started)
        self._tell_start(end_ns)
        self._awaited = set(self._active)
        handout.begin(list(self._active.values()), self._start_ns)
        return handout

    def _make_handout(self) -> Handout:
        plan = self._plan
        if plan.arrivals is None:
            shares = divide(plan.streams or 1, len(self._active))
            slots = dict(zip(self._active, shares, strict=True))
            return ClosedLoopHandout(self._number, slots, self._limits, self._ledger)
        schedule = plan.arrivals.offsets_ns(arrival_rng(self._spec.seed, self._number))
        return OpenLoopHandout(self._number, schedule, self._start_ns, self._limits, self._ledger)

    def _tell_start(self, end_ns: int | None) -> None:
        parts = len(self._active)
        slots = _shares(self._plan.streams, parts)
        conversations = _shares(self._spec.open_conversations, parts)
        for worker, own_slots, own_conversations in zip(
            self._active.values(), slots, conversations, strict=True
        ):
            worker.send(
                BeginStage(
                    stage=self._number,
                    start_ns=self._start_ns,
                    slots=own_slots,
                    closed_loop=self._plan.arrivals is None,
                    open_conversations=own_conversations,
                    end_ns=end_ns,
                    flush_on_error=self._has_error_rule(),
                )
            )

    def _step(self, handout: Handout) -> None:
        """Decide what the present moment asks for: more work, a stop, the end of patience."""
        now_ns = self._now_ns()
        if not self._draining:
            handout.advance(list(self._active.values()), now_ns)
        self._tally.progress.passes(self._elapsed_s())
        self._evaluate()
        if not self._draining and handout.is_finished:
            self._drain_naturally()
        if self._kill_at_ns is not None and now_ns > self._kill_at_ns:
            self._kill_at_ns = None
            for number in list(self._awaited):
                self._active[number].kill("did not end its requests in time")

    async def _sleep(self) -> None:
        # Work is handed out well before the time ahead has run down, however short it is.
        wait_s = min(_TICK_S, self._spec.handout_ahead_s / 4)
        deadline_s = self._rules.next_deadline_s(self._elapsed_s())
        if deadline_s is not None:
            wait_s = min(wait_s, max(0.0, deadline_s - self._elapsed_s()))
        await self._wait(wait_s)

    async def _wait(self, wait_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), wait_s)
        self._wake.clear()
        if self._error is not None:
            raise self._error

    # --- what workers say ----------------------------------------------------------------------

    def _take(self, worker: WorkerProcess, message: FromWorker) -> None:
        if isinstance(message, Report):
            self._take_report(worker, message)
        elif isinstance(message, Want):
            if not self._draining and self._handout is not None:
                self._handout.wanted(worker, self._now_ns())
        elif isinstance(message, Sample):
            if message.sample is not None and message.sample.stage == self._number:
                self._context.journal.event(message.sample)
        elif isinstance(message, StageReady | StageDone):
            if message.stage == self._number:
                self._awaited.discard(worker.number)
                self._wake.set()
        elif isinstance(message, Broken):
            note = Note(topic="worker_error", text=message.traceback)
            self._context.journal.event(note)

    def _take_report(self, worker: WorkerProcess, report: Report) -> None:
        if report.stage != self._number:
            return
        journal = self._context.journal
        journal.records(report.records)
        journal.updates(report.updates)
        self._ledger.report(worker.number, report.ended, report.open_turns, report.dropped)
        self._tally.report(worker.number, report, self._elapsed_s())
        if report.exhausted_at is not None:
            self._exhausted = True
            self._limits.exhausted_at(report.exhausted_at)
            self._wake.set()
        self._evaluate()

    def _lose(self, worker: WorkerProcess, cause: str) -> None:
        if self._active.pop(worker.number, None) is None:
            return
        self._awaited.discard(worker.number)
        self._wake.set()
        self._tally.worker_lost(worker.number)
        unfinished = self._ledger.worker_lost(worker.number)
        lost = self._give_again(unfinished)
        event = WorkerDied(
            worker=worker.number, stage=self._number, cause=cause, lost_requests=len(lost)
        )
        self._context.journal.event(event)
        if self._orphans is not None and not self._aborted:
            records = self._orphans.lost(lost, worker.number, cause)
            self._write_own(records, is_error=True)
        self._evaluate()

    def _give_again(self, unfinished: Sequence[Unfinished]) -> list[Unfinished]:
        """Give what was not due yet to the workers that live; what remains is lost."""
        now_ns, handout = self._now_ns(), self._handout
        if handout is None:
            return []
        early = [arrival for arrival in unfinished if handout.takes_back(arrival, now_ns)]
        gone = set(early)
        lost = [arrival for arrival in unfinished if arrival not in gone]
        if self._cut_ns is not None or not self._active:
            return lost  # Nothing is sent any more: what falls due later is not offered.
        if self._draining:
            return [*lost, *early]  # The others may have said already that they are done.
        handout.give_again(list(self._active.values()), early)
        return lost

    # --- ending --------------------------------------------------------------------------------

    def _evaluate(self) -> None:
        if self._cut_ns is not None or self._handout is None:
            return
        stop = self._rules.evaluate(self._tally.progress)
        if self._stop_asked:
            stop = Stop("interrupted", "a stop was asked for")
        elif not self._active:
            stop = Stop("worker_lost", "no load worker is left")
        if stop is not None:
            self._cut(stop, self._handout)

    def _cut(self, stop: Stop, handout: Handout) -> None:
        """End sending; the workers cancel what is left after the grace period."""
        now_ns = self._now_ns()
        cut_ns = now_ns if self._limits.end_ns is None else min(now_ns, self._limits.end_ns)
        cancel_ns = now_ns + ns_from_s(self._spec.limits.grace_s)
        self._stop, self._cut_ns, self._draining = stop, cut_ns, True
        self._kill_at_ns = cancel_ns + ns_from_s(_DRAIN_MARGIN_S)
        self._tally.sending_ended(s_from_ns(cut_ns - self._start_ns))
        for number in self._awaited:
            self._active[number].send(Drain(self._number, cut_ns, cancel_ns))
        unsent = (Unfinished(*pair) for pair in handout.unsent_before(cut_ns))
        assert self._orphans is not None
        self._write_own(self._orphans.unsent(unsent), is_error=False)
        self._wake.set()

    def _drain_naturally(self) -> None:
        """Everything was handed out: the stage is over when all of it has ended."""
        self._draining = True
        for number in self._awaited:
            self._active[number].send(Drain(self._number))

    def _write_off(self) -> None:
        """After an abort: what the killed workers had is recorded as cancelled."""
        assert self._orphans is not None
        now_ns = self._now_ns()
        self._cut_ns = self._cut_ns or now_ns
        self._stop = self._stop or Stop("interrupted", "the run was aborted")
        for number in sorted(self._active):
            due = [a for a in self._ledger.worker_lost(number) if a.due_ns <= now_ns]
            self._write_own(self._orphans.unsent(due, number), is_error=False)

    def _finish(self, handout: Handout) -> StageResult:
        assert self._orphans is not None
        self._orphans.close()
        elapsed_s = self._elapsed_s()
        self._tally.sending_ended(elapsed_s)
        offered = self._ledger.ended + self._orphans.arrivals
        ended = self._ended_event(handout, offered)
        self._context.journal.event(ended)
        assert self._started is not None
        result = stage_result(self._started, ended)
        self._context.journal.observer.progress(self._tally.snapshot(elapsed_s))
        self._context.journal.observer.stage_ended(result)
        return result

    def _ended_event(self, handout: Handout, offered: int) -> StageEnded:
        reason, detail = self._plan.natural_end, None
        if self._stop is not None:
            reason, detail = self._stop.reason, self._stop.detail
        elif self._exhausted:
            reason = "requests_exhausted"
        elif handout.schedule_ended:
            reason = "schedule_ended"
        sending_ended_ns = self._cut_ns or max(self._tally.last_sent_ns, self._start_ns)
        return StageEnded(
            stage=self._number,
            at_ns=self._now_ns() - self._start_ns,
            sending_ended_ns=sending_ended_ns - self._start_ns,
            reason=reason,
            offered=offered,
            detail=detail,
            counts=self._tally.counts(self._stop is not None and self._stop.is_error_rule),
        )

    # --- parts ---------------------------------------------------------------------------------

    def _write_own(self, records: Iterable[RequestRecord], is_error: bool) -> None:
        """Write records that no worker can write, in batches: there may be very many."""
        source, journal = iter(records), self._context.journal
        while batch := list(islice(source, _OWN_BATCH)):
            journal.own_records(batch)
            errored = len(batch) if is_error else 0
            self._tally.own(self._elapsed_s(), errored=errored, cancelled=len(batch) - errored)

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error
        self._wake.set()

    def _open_inputs(self) -> Inputs:
        return open_inputs(self._context.recipe, self._spec.seed, self._number)

    def _elapsed_s(self) -> float:
        return max(0.0, s_from_ns(self._now_ns() - self._start_ns)) if self._start_ns else 0.0

    def _has_error_rule(self) -> bool:
        limits = self._spec.limits
        rules = (limits.max_errors, limits.max_consecutive_errors, limits.max_error_rate)
        return bool(self._context.rules) or any(rule is not None for rule in rules)

    def _started_event(self) -> StageStarted:
        lead = timedelta(seconds=self._context.start_lead_s)
        return StageStarted(
            stage=self._number,
            name=self._plan.name,
            profile=self._plan.profile,
            started_wall=(self._context.clock.now() + lead).isoformat(),
            started_monotonic_ns=self._start_ns,
            workers=len(self._active),
            planned_warmup_s=self._spec.warmup_s,
            planned_cooldown_s=self._spec.cooldown_s,
            step=self._plan.step,
        )


def _usable(workers: int, *limits: int | None) -> int:
    """Each worker needs a slot, and an open conversation, of its own."""
    return min([workers, *(limit for limit in limits if limit is not None)])


def _saturation(plan: StagePlan) -> list[RuleFactory]:
    limit = plan.saturation
    if limit is None or plan.arrivals is None:
        return []  # A closed loop sends no more than the target takes.
    changes = isinstance(plan.arrivals, RampArrivals | TraceArrivals)
    return [lambda: Saturation(limit, plan.streams, changes)]


def _shares(total: int | None, parts: int) -> Sequence[int | None]:
    return [None] * parts if total is None else divide(total, parts)
