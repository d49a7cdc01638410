"""A stage on one worker: every request ends exactly once, whatever backends and stops do."""

from __future__ import annotations

import asyncio
import contextlib
from array import array

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.backends.backend import Answer, Message
from headway.core.clock import SystemClock, monotonic_ns
from headway.core.errors import InternalError
from headway.load.conversation import ConversationRun
from headway.load.lifecycle import Request, StageFrame
from headway.load.messages import Arrivals, BeginStage, Drain, Grants, StageDone, Want
from headway.load.stage_worker import StageServices, StageWorker
from headway.records.record import Failure

DEADLINE_S = 20.0


class ScriptedBackend:
    """Does with turn (index, turn) what its script says; an unknown one answers at once."""

    def __init__(self, script=None):
        self.script = script or {}
        self.running = 0
        self.most_running = 0
        self.histories = {}

    async def startup(self):
        pass

    async def validate(self):
        raise NotImplementedError

    async def resolve(self, call, history, progress):
        index, turn = (int(part) for part in call.prompt.split("/"))
        self.histories[index, turn] = history
        progress.sent_ns = monotonic_ns()
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            return await self._act(self.script.get((index, turn), "answer"), progress)
        finally:
            self.running -= 1

    async def _act(self, action, progress):
        if action == "wait":
            await asyncio.sleep(0.003)
        elif action == "fail":
            await asyncio.sleep(0)
            return Answer(failure=Failure(category="http_status", message="503", status=503))
        elif action == "raise":
            raise RuntimeError("a bug in the backend")
        elif action == "raise_exit":
            raise SystemExit(3)
        elif action == "cancel_itself":
            raise asyncio.CancelledError
        elif action == "hang":
            progress.text = "half an ans"
            await asyncio.Event().wait()
        elif action == "deaf":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return Answer(message=Message("assistant", "late"))
        progress.done_ns = monotonic_ns()
        return Answer(message=Message("assistant", f"answer to {progress.sent_ns}"))

    async def shutdown(self):
        pass


class Stage:
    """A StageWorker with its surroundings."""

    def __init__(self, outbox, inputs, backend, *, slots=4, closed=True, limit=None, observe=False):
        self.outbox = outbox
        self.backend = backend
        self.broken = []
        self.done = asyncio.Event()
        outbox.on_message = self._said
        self.start_ns = monotonic_ns()
        begin = BeginStage(
            stage=2,
            start_ns=self.start_ns,
            slots=slots,
            closed_loop=closed,
            open_conversations=limit,
        )
        services = StageServices(backend, outbox, SystemClock(), self.broken.append)
        frame = StageFrame(2, 0, self.start_ns, False)
        self.worker = StageWorker(begin, inputs, frame, services, observe)

    def _said(self, message):
        if isinstance(message, StageDone):
            self.done.set()

    async def finish(self, *, cut=False, grace_s=0.0):
        now_ns = monotonic_ns()
        cancel_ns = now_ns + int(grace_s * 1e9)
        drain = Drain(2, now_ns, cancel_ns) if cut else Drain(2)
        self.worker.drain(drain)
        ticking = asyncio.ensure_future(self._tick())
        try:
            await asyncio.wait_for(self.done.wait(), DEADLINE_S)
        finally:
            ticking.cancel()
        await self.worker.close()
        assert self.broken == []

    async def _tick(self):
        while True:
            await asyncio.sleep(0.002)
            self.worker.flush()


@pytest.fixture
def make_stage(kept_outbox, listed_inputs):
    def make(turns=None, script=None, *, backend=None, think_time_s=0.0, **options):
        inputs = listed_inputs(turns, think_time_s)
        return Stage(kept_outbox(), inputs, backend or ScriptedBackend(script), **options)

    return make


def keys(records):
    return sorted((record.index, record.turn) for record in records)


def every_turn(turns):
    return [(index, turn) for index, number in enumerate(turns) for turn in range(number)]


async def test_a_conversation_runs_to_its_end_with_its_history(make_stage):
    stage = make_stage([3])
    stage.worker.take_grants(Grants(2, 0, 1))
    await stage.finish()
    assert keys(stage.outbox.records) == [(0, 0), (0, 1), (0, 2)]
    roles = [message.role for message in stage.backend.histories[0, 2]]
    assert roles == ["user", "assistant", "user", "assistant"]
    assert stage.backend.histories[0, 2][0].content == "0/0"
    assert stage.outbox.ended == [0]


async def test_two_turns_with_think_time_on_one_stream_do_not_stand_still(make_stage):
    """Trap 31."""
    stage = make_stage([2, 2], think_time_s=0.02, slots=1)
    stage.worker.take_grants(Grants(2, 0, 2))
    await stage.finish()
    records = {(r.index, r.turn): r for r in stage.outbox.records}
    assert len(records) == 4
    for index in (0, 1):
        think_ns = records[index, 1].due_ns - records[index, 0].done_ns
        assert think_ns >= 20_000_000
        assert records[index, 1].sent_ns >= records[index, 1].due_ns
    assert stage.backend.most_running == 1


async def test_a_failed_turn_cancels_the_rest_of_its_conversation(make_stage):
    """L6."""
    stage = make_stage([4, 1], {(0, 1): "fail"})
    stage.worker.take_grants(Grants(2, 0, 2))
    await stage.finish()
    status = {(r.index, r.turn): r.status for r in stage.outbox.records}
    assert status == {
        (0, 0): "completed",
        (0, 1): "errored",
        (0, 2): "cancelled",
        (0, 3): "cancelled",
        (1, 0): "completed",
    }


@pytest.mark.parametrize("action", ["raise", "raise_exit", "cancel_itself"])
async def test_whatever_a_backend_raises_becomes_a_record_with_its_traceback(make_stage, action):
    """Traps 8 and 33: a SystemExit, or an exception in a callback, hung the run."""
    stage = make_stage([1, 1], {(0, 0): action})
    stage.worker.take_grants(Grants(2, 0, 2))
    await stage.finish()
    first, second = sorted(stage.outbox.records, key=lambda record: record.index)
    assert first.status == "errored"
    assert first.failure.category == "backend"
    assert "Traceback" in first.failure.body
    assert second.status == "completed"


async def test_a_cancelled_request_keeps_what_had_arrived(make_stage):
    """Trap 35: partial responses were lost (399 of 399)."""
    stage = make_stage([1], {(0, 0): "hang"})
    stage.worker.take_grants(Grants(2, 0, 1))
    await asyncio.sleep(0)
    await stage.finish(cut=True)
    (record,) = stage.outbox.records
    assert record.status == "cancelled"
    assert record.partial_text == "half an ans"
    assert record.sent_ns is not None
    assert record.done_ns >= record.sent_ns


async def test_a_request_cancelled_before_its_slot_ran_a_step_is_recorded(make_stage):
    """Trap 36: what was created during a cancel was neither cancelled nor recorded."""
    stage = make_stage([1, 1])
    stage.worker.take_grants(Grants(2, 0, 2))
    await stage.worker.close()
    records = stage.outbox.records
    assert keys(records) == [(0, 0), (1, 0)]
    assert {record.status for record in records} == {"cancelled"}


async def test_the_grace_period_lets_requests_finish(make_stage):
    stage = make_stage([1], {(0, 0): "wait"})
    stage.worker.take_grants(Grants(2, 0, 1))
    await stage.finish(cut=True, grace_s=10)
    assert [record.status for record in stage.outbox.records] == ["completed"]


async def test_at_the_cap_requests_are_late_and_none_is_lost(make_stage):
    """Trap 27."""
    script = {(index, 0): "wait" for index in range(40)}
    stage = make_stage(None, script, slots=2, closed=False)
    due = array("q", [stage.start_ns] * 40)
    stage.worker.take_arrivals(Arrivals(2, 0, 1, due.tobytes()))
    await stage.finish()
    records = stage.outbox.records
    assert keys(records) == [(index, 0) for index in range(40)]
    assert stage.backend.most_running == 2
    assert {record.due_ns for record in records} == {0}
    lateness = sorted(record.sent_ns for record in records)
    assert lateness[-1] > 19 * 3_000_000


async def test_sleeping_future_requests_hold_no_slot(make_stage):
    """Trap 28: the slot was taken before the arrival was asked for."""
    stage = make_stage([2, 1, 1, 1], think_time_s=30, slots=1, closed=True)
    stage.worker.take_grants(Grants(2, 0, 4))
    while len(stage.outbox.records) < 4:
        await asyncio.sleep(0.002)
        stage.worker.flush()
    await stage.finish(cut=True)
    status = {(r.index, r.turn): r.status for r in stage.outbox.records}
    assert status.pop((0, 1)) == "cancelled"
    assert set(status.values()) == {"completed"}


async def test_what_was_never_due_is_dropped_and_what_was_due_is_cancelled(make_stage):
    stage = make_stage(None, {(0, 0): "hang"}, slots=1, closed=False)
    far_ns = stage.start_ns + 3_600_000_000_000
    due = array("q", [stage.start_ns, stage.start_ns, far_ns])
    stage.worker.take_arrivals(Arrivals(2, 0, 1, due.tobytes()))
    await asyncio.sleep(0)
    await stage.finish(cut=True)
    status = {record.index: record.status for record in stage.outbox.records}
    assert status == {0: "cancelled", 1: "cancelled"}
    never_sent = [r for r in stage.outbox.records if r.index == 1]
    assert never_sent[0].sent_ns is None
    assert stage.outbox.dropped == [2]


async def test_a_closed_loop_worker_asks_for_more_before_it_runs_dry(make_stage):
    stage = make_stage(slots=2)
    stage.worker.take_grants(Grants(2, 0, 2))
    await asyncio.sleep(0.01)
    assert any(isinstance(message, Want) for message in stage.outbox.messages)
    await stage.finish(cut=True)


async def test_a_backend_that_never_waits_does_not_keep_the_loop(make_stage):
    """A silent event loop could neither be stopped nor report."""
    stage = make_stage(slots=1)
    stage.worker.take_grants(Grants(2, 0, 1_000_000))
    await asyncio.sleep(0.01)
    await stage.finish(cut=True)
    assert 0 < len(stage.outbox.records) < 1_000_000


async def test_the_life_of_a_request_can_be_watched(make_stage):
    """L5: every change once, in order, each with its time; terminal states exactly once."""
    stage = make_stage([2], {(0, 0): "wait"}, observe=True)
    stage.worker.take_grants(Grants(2, 0, 1))
    await stage.finish()
    updates = [u for report in stage.outbox.reports for u in report.updates]
    for turn in (0, 1):
        states = [u.state for u in updates if u.turn == turn]
        assert states == ["queued", "pending", "in_progress", "completed"]
        times = [u.at_ns for u in updates if u.turn == turn]
        assert times == sorted(times)


async def test_nobody_pays_for_updates_that_nobody_watches(make_stage):
    stage = make_stage()
    stage.worker.take_grants(Grants(2, 0, 20))
    await stage.finish()
    assert all(report.updates == [] for report in stage.outbox.reports)


def test_a_request_refuses_a_second_end(listed_inputs):
    """Trap 35: requests in flight were reported twice and the run aborted."""
    conversation = ConversationRun(0, listed_inputs([1]).conversation(0))
    request = Request(conversation.begin(0), StageFrame(0, 0, 0, False))
    request.end("completed", 1)
    with pytest.raises(InternalError):
        request.end("cancelled", 2)


ACTIONS = ["answer", "answer", "wait", "fail", "raise", "cancel_itself", "hang", "deaf"]


@given(
    turns=st.lists(st.integers(1, 3), min_size=1, max_size=12),
    actions=st.lists(st.sampled_from(ACTIONS), min_size=36, max_size=36),
    slots=st.integers(1, 5),
    limit=st.none() | st.integers(1, 4),
    closed=st.booleans(),
    stop_after_ms=st.integers(0, 8),
    handed_out=st.integers(1, 16),
)
@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_every_request_has_exactly_one_terminal_record_whatever_happens(
    make_stage, turns, actions, slots, limit, closed, stop_after_ms, handed_out
):
    """L5, traps 33, 35, 36: random faults, random limits, a stop at a random moment."""
    script = dict(zip(every_turn([3] * 12), actions, strict=True))

    async def scenario():
        stage = make_stage(turns, script, slots=slots, limit=limit, closed=closed)
        if closed:
            stage.worker.take_grants(Grants(2, 0, handed_out))
        else:
            due = array("q", [stage.start_ns + i * 500_000 for i in range(handed_out)])
            stage.worker.take_arrivals(Arrivals(2, 0, 1, due.tobytes()))
        await asyncio.sleep(stop_after_ms / 1_000)
        await stage.finish(cut=True, grace_s=0.002)
        return stage

    stage = asyncio.run(scenario())
    records, outbox = stage.outbox.records, stage.outbox
    assert len(set(keys(records))) == len(records), "a request ended twice"
    ended, dropped = set(outbox.ended), set(outbox.dropped)
    assert ended | dropped == set(range(handed_out))
    assert not ended & dropped
    expected = [(index, turn) for index in ended for turn in range(turns[index])]
    assert keys(records) == sorted(expected)
    assert stage.backend.running == 0
    assert stage.backend.most_running <= slots


async def test_while_the_parent_reads_too_slowly_no_request_begins(make_stage):
    """Trap 40: what it has not read would fill the memory; L8."""
    stage = make_stage(None, slots=2)
    outbox = stage.outbox
    caught_up = asyncio.Event()
    outbox.over_high_water = True
    outbox.wait_drained = caught_up.wait
    stage.worker.take_grants(Grants(2, 0, 100))
    stage.worker.take_grants(Grants(2, 100, 100))
    for _ in range(50):
        await asyncio.sleep(0)
    assert stage.backend.histories == {}
    outbox.over_high_water = False
    caught_up.set()
    await stage.finish()
    assert keys(stage.outbox.records) == [(index, 0) for index in range(200)]


async def test_a_slot_that_never_waits_for_the_target_waits_for_the_parent(make_stage):
    """A backend that answers at once goes from request to request without the event loop."""
    stage = make_stage(None, slots=1)
    outbox = stage.outbox
    caught_up = asyncio.Event()

    def fall_behind(index):
        if index == 10:
            outbox.over_high_water = True
            outbox.wait_drained = caught_up.wait

    class Counting(dict):
        def __setitem__(self, key, value):
            super().__setitem__(key, value)
            fall_behind(key[0])

    stage.backend.histories = Counting()
    stage.worker.take_grants(Grants(2, 0, 500))
    for _ in range(50):
        await asyncio.sleep(0)
    begun = len(stage.backend.histories)
    assert 10 < begun < 100
    outbox.over_high_water = False
    caught_up.set()
    await stage.finish()
    assert keys(stage.outbox.records) == [(index, 0) for index in range(500)]


async def test_a_request_that_outlives_its_cancellation_ends_once(make_stage):
    """Its backend is deaf to it for longer than a stop may take, and answers after all."""
    late = asyncio.Event()

    class Deaf(ScriptedBackend):
        async def _act(self, action, progress):
            while not late.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await late.wait()
            return Answer(message=Message("assistant", "at last"))

    backend = Deaf()
    stage = make_stage([1, 1], backend=backend, slots=2)
    stage.worker.take_grants(Grants(2, 0, 2))
    await until(lambda: backend.running == 2)
    tasks = set(stage.worker._slots._tasks)
    await stage.finish(cut=True)
    assert {record.status for record in stage.outbox.records} == {"cancelled"}
    late.set()
    await asyncio.wait(tasks, timeout=DEADLINE_S)
    stage.worker.flush()
    assert keys(stage.outbox.records) == [(0, 0), (1, 0)]
    assert stage.broken == []


async def test_a_slot_that_fails_by_itself_is_told_and_never_silent(make_stage):
    """Trap 33: what a backend left in its progress cannot be written down."""

    class Spoiling(ScriptedBackend):
        async def _act(self, action, progress):
            await asyncio.sleep(0)
            progress.finish_reason = object()
            return Answer(failure=Failure(category="http_status", message="m", status=500))

    stage = make_stage([1] * 64, backend=Spoiling(), slots=1)
    stage.worker.take_grants(Grants(2, 0, 64))
    await until(lambda: stage.broken)
    assert isinstance(stage.broken[0], TypeError)


async def test_large_records_leave_before_the_next_tick(make_stage):
    """A batch is bounded by its bytes as well as by time."""

    class Wordy(ScriptedBackend):
        async def _act(self, action, progress):
            progress.text = "x" * 8_000
            return Answer(failure=Failure(category="http_status", message="m", status=500))

    stage = make_stage([1] * 128, backend=Wordy(), slots=1)
    stage.worker.take_grants(Grants(2, 0, 128))
    await until(lambda: len(stage.backend.histories) == 128)
    assert len(stage.outbox.reports) >= 1, "nobody has called flush"
    assert max(len(report.records) for report in stage.outbox.reports) < 1_000_000
    await stage.finish()
    assert len(stage.outbox.records) == 128


async def test_of_many_different_errors_the_first_few_are_told_with_a_batch(make_stage):
    """The records hold them all; a batch with each message would be as large as they are."""

    class Varied(ScriptedBackend):
        async def _act(self, action, progress):
            number = len(self.histories)
            return Answer(failure=Failure(category="backend", message=f"error {number % 9}"))

    stage = make_stage([1] * 45, backend=Varied(), slots=1)
    stage.worker.take_grants(Grants(2, 0, 45))
    await until(lambda: len(stage.backend.histories) == 45)
    await stage.finish()
    (messages,) = [r.counters.error_messages for r in stage.outbox.reports if r.counters.errored]
    assert len(messages) == 5
    assert set(messages.values()) == {5}
    assert len({record.failure.message for record in stage.outbox.records}) == 9


async def test_a_stage_that_is_closed_before_its_cancellation_is_due_ends_now(make_stage):
    stage = make_stage([1], {(0, 0): "hang"})
    stage.worker.take_grants(Grants(2, 0, 1))
    await until(lambda: stage.backend.running)
    far_ns = monotonic_ns() + 3_600_000_000_000
    stage.worker.drain(Drain(2, monotonic_ns(), far_ns))
    await stage.worker.close()
    assert [record.status for record in stage.outbox.records] == ["cancelled"]


async def test_a_second_drain_with_less_patience_is_the_one_that_counts(make_stage):
    """The stage's own end comes first, then Ctrl-C."""
    stage = make_stage([1], {(0, 0): "hang"})
    stage.worker.take_grants(Grants(2, 0, 1))
    await until(lambda: stage.backend.running)
    far_ns = monotonic_ns() + 3_600_000_000_000
    stage.worker.drain(Drain(2, monotonic_ns(), far_ns))
    await stage.finish(cut=True)
    assert [record.status for record in stage.outbox.records] == ["cancelled"]


async def test_what_is_watched_before_it_is_due_is_queued_and_not_pending(listed_inputs):
    conversation = ConversationRun(0, listed_inputs([1]).conversation(0))
    request = Request(conversation.begin(1_000), StageFrame(2, 0, 0, False))
    assert [u.state for u in request.updates(400)] == ["queued"]
    assert [u.state for u in request.updates(1_000)] == ["pending"]
    assert request.updates(2_000) == []


async def until(condition):
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110  whatever changes it tells nobody
            await asyncio.sleep(0.001)
