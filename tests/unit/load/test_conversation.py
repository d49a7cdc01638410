"""L6: a graph of turns on one worker: side by side, joined, in order, each ended exactly once."""

from __future__ import annotations

import asyncio
from array import array

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.backends.backend import Answer, Call, Message
from headway.core.clock import SystemClock, monotonic_ns
from headway.load.conversation import ConversationRun
from headway.load.inputs.conversation import Conversation, Links, Turn, lineage
from headway.load.lifecycle import StageFrame
from headway.load.messages import Arrivals, BeginStage, Drain, Grants, StageDone
from headway.load.stage_worker import StageServices, StageWorker
from headway.load.work import WorkQueue
from headway.records.record import Failure

DEADLINE_S = 30.0
MS = 1_000_000


def turn(number, *after, think_s=0.0, edges=(), **links):
    bound = Links(after, edges, links.get("history"), links.get("answers", {}))
    return Turn(Call(prompt=links.get("text", f"q{number}")), think_s, bound)


def fan(width):
    """A first turn, `width` siblings, and a join."""
    siblings = [turn(number, 0) for number in range(1, width + 1)]
    return Conversation((turn(0), *siblings, turn(width + 1, *range(1, width + 1))))


def complete(run, turn, ended_ns=0, text=None):
    answer = Answer(message=Message("assistant", text or f"a{turn.number}"))
    return run.turns_after(turn, answer, ended_ns)


def contents(turn):
    return [message.content for message in turn.history]


# --- what waits for what, by itself ------------------------------------------------------------


def test_siblings_are_ready_together_and_a_join_after_the_last_of_them():
    run = ConversationRun(0, fan(3))
    siblings = complete(run, run.begin(5), ended_ns=100)
    assert [(one.number, one.due_ns) for one in siblings] == [(1, 100), (2, 100), (3, 100)]
    assert complete(run, siblings[2], ended_ns=200) == []
    assert complete(run, siblings[0], ended_ns=300) == []
    (join,) = complete(run, siblings[1], ended_ns=250)
    assert (join.number, join.due_ns) == (4, 300), "due when the last one ended"
    assert contents(join) == ["q0", "a0", "q1", "a1", "q2", "a2", "q3", "a3"]
    assert not join.leads_on


def test_a_join_is_due_at_the_latest_of_its_turns_ends_and_their_think_times():
    source = Conversation((turn(0), turn(1), turn(2, 0, 1, think_s=0.002, edges=(0.010, None))))
    run = ConversationRun(0, source)
    first = run.begin(0)
    (second,) = run.begin_others(0)
    assert complete(run, first, ended_ns=1 * MS) == []
    (join,) = complete(run, second, ended_ns=8 * MS)
    assert join.due_ns == 11 * MS


def test_several_first_turns_keep_their_distance_from_the_earliest():
    run = ConversationRun(0, Conversation((turn(0, think_s=2), turn(1, think_s=0.5), turn(2))))
    assert (run.begin(100).number, run.begin(100).due_ns) == (2, 100)
    others = [(one.number, one.due_ns) for one in run.begin_others(100)]
    assert others == [(1, 100 + 500 * MS), (0, 100 + 2000 * MS)]


def test_what_a_turn_hears_can_be_less_than_what_it_waits_for():
    source = Conversation(
        (turn(0), turn(1, 0, history=()), turn(2, 0), turn(3, 1, 2, history=(0,)))
    )
    run = ConversationRun(0, source)
    alone, usual = complete(run, run.begin(0))
    assert contents(alone) == []
    assert contents(usual) == ["q0", "a0"]
    complete(run, alone)
    (join,) = complete(run, usual)
    assert contents(join) == ["q0", "a0"]


def test_answers_go_where_the_text_names_them_and_are_not_read_for_names_themselves():
    text = "first {{a}}, then {{b}} and {{c}}"
    source = Conversation(
        (turn(0), turn(1, 0), turn(2, 1, text=text, history=(), answers={"a": 0, "b": 1}))
    )
    run = ConversationRun(0, source)
    (second,) = complete(run, run.begin(0), text="{{b}}")
    (third,) = complete(run, second, text="two")
    assert third.call.prompt == "first {{b}}, then two and {{c}}"
    assert third.history == ()


def test_what_waits_for_a_turn_that_failed_is_lost_once_and_the_rest_goes_on():
    source = Conversation(
        (turn(0), turn(1, 0), turn(2, 0), turn(3, 1), turn(4, 2), turn(5, 3, 4), turn(6, 5))
    )
    run = ConversationRun(0, source)
    one, two = complete(run, run.begin(0))
    assert [lost.number for lost in run.turns_lost_with(one, 9)] == [3, 5, 6]
    (four,) = complete(run, two)
    assert four.number == 4
    assert complete(run, four) == []
    assert run.turns_lost_with(four, 9) == []


@st.composite
def graphs(draw, most=7):
    """A conversation of random links, histories and small think times."""
    size = draw(st.integers(1, most))
    turns = []
    for number in range(size):
        earlier = st.lists(st.integers(0, number - 1), unique=True, max_size=3)
        after = tuple(draw(earlier)) if number else ()
        edges = tuple(draw(st.sampled_from([None, 0.0, 0.002])) for _ in after)
        turns.append(turn(number, *after, think_s=draw(st.sampled_from([0, 0.001])), edges=edges))
    return Conversation(tuple(turns))


@given(graphs(), st.randoms(use_true_random=False))
def test_a_history_is_the_lineage_in_whatever_order_turns_end(source, random):
    run = ConversationRun(0, source)
    after = [one.links.after for one in source.turns]
    ready = [run.begin(0), *run.begin_others(0)]
    seen = 0
    while ready:
        one = ready.pop(random.randrange(len(ready)))
        expected = [f"{kind}{n}" for n in lineage(one.number, after) for kind in "qa"]
        assert contents(one) == expected
        ready += complete(run, one)
        seen += 1
    assert seen == len(source.turns)


# --- in the queue ------------------------------------------------------------------------------


def test_ready_turns_and_arrivals_go_by_their_due_times():
    """Siblings queue fairly: what fell due first is sent first."""
    queue = WorkQueue(Given([fan(2), *[Conversation((turn(0),))] * 3]), None, 0)
    queue.add_arrivals(0, 1, array("q", [0, 10, 30, 50]).tobytes())
    first = queue.take(0)
    queue.add_ready(complete(first.conversation, first, ended_ns=20))
    taken = [queue.take(60) for _ in range(5)]
    assert [(one.conversation.index, one.number) for one in taken] == [
        (1, 0),
        (0, 1),
        (0, 2),
        (2, 0),
        (3, 0),
    ]


def test_a_ready_turn_is_taken_when_the_arrival_before_it_turns_out_to_be_nothing():
    queue = WorkQueue(Given([fan(1)]), None, 0)
    queue.add_arrivals(0, 1, array("q", [0, 10]).tobytes())
    first = queue.take(0)
    queue.add_ready(complete(first.conversation, first, ended_ns=20))
    assert queue.take(30).number == 1
    assert queue.dropped == [1]


@pytest.mark.parametrize("after", [(1,), (2,), (-1,)])
def test_links_that_cannot_be_make_a_failed_request(after):
    """Of a plug-in: a turn that nobody could ever send would keep the stage from ending."""
    queue = WorkQueue(Given([Conversation((turn(0), turn(1, *after)))]), None, 0)
    queue.add_grants(0, 1)
    failed = queue.take(0)
    assert "turn 1 refers to one that does not come before it" in str(failed.input_error)
    assert failed.conversation.left == 1


def test_a_cut_gives_every_first_turn_of_what_had_arrived():
    queue = WorkQueue(Given([Conversation((turn(0), turn(1), turn(2, 0, 1)))]), None, 0)
    queue.add_arrivals(0, 1, array("q", [0]).tobytes())
    assert [one.number for one in queue.cut(5)] == [0, 1]


# --- on the slots of a worker ------------------------------------------------------------------


class Given:
    """Conversations as given."""

    def __init__(self, conversations):
        self._conversations = conversations

    def conversation(self, index):
        return self._conversations[index] if index < len(self._conversations) else None

    def close(self):
        pass


class GraphBackend:
    """Does with (conversation, turn) what its script says; waits until all of `gate` are there."""

    def __init__(self, script=None, gate=0):
        self.script = script or {}
        self.running = 0
        self.most_running = 0
        self._gate = gate
        self._full = asyncio.Event()

    async def resolve(self, call, history, progress):
        progress.sent_ns = monotonic_ns()
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            return await self._act(call, progress)
        finally:
            self.running -= 1

    async def _act(self, call, progress):
        action = self.script.get(call.prompt, "answer")
        if action == "gate":
            if self.running == self._gate:
                self._full.set()
            await asyncio.wait_for(self._full.wait(), DEADLINE_S)
        elif action == "wait":
            await asyncio.sleep(0.002)
        elif action == "fail":
            return Answer(failure=Failure(category="http_status", message="503", status=503))
        elif action == "raise":
            raise RuntimeError("a bug in the backend")
        elif action == "hang":
            await asyncio.Event().wait()
        progress.done_ns = monotonic_ns()
        return Answer(message=Message("assistant", f"to {call.prompt}"))


class Stage:
    """A worker's stage over given conversations."""

    def __init__(self, outbox, conversations, backend, *, slots=4, limit=None):
        self.outbox, self.backend, self.broken = outbox, backend, []
        self.done = asyncio.Event()
        outbox.on_message = self._said
        self.start_ns = monotonic_ns()
        begin = BeginStage(
            stage=0,
            start_ns=self.start_ns,
            slots=slots,
            closed_loop=True,
            open_conversations=limit,
        )
        services = StageServices(backend, outbox, SystemClock(), self.broken.append)
        frame = StageFrame(0, 0, self.start_ns, False)
        self.worker = StageWorker(begin, Given(conversations), frame, services, False)

    def _said(self, message):
        if isinstance(message, StageDone):
            self.done.set()

    async def finish(self, *, cut=False):
        now_ns = monotonic_ns()
        self.worker.drain(Drain(0, now_ns, now_ns + 2 * MS) if cut else Drain(0))
        async with asyncio.timeout(DEADLINE_S):
            while not self.done.is_set():
                self.worker.flush()
                await asyncio.sleep(0.001)
        await self.worker.close()
        assert self.broken == []


@pytest.mark.parametrize("slots", [4, 9])
async def test_siblings_run_side_by_side_on_free_slots(kept_outbox, slots):
    """Trap 31: siblings of a fan-out ran one after another beside free slots."""
    backend = GraphBackend({f"q{n}": "gate" for n in range(1, 5)}, gate=4)
    stage = Stage(kept_outbox(), [fan(4)], backend, slots=slots)
    stage.worker.take_grants(Grants(0, 0, 1))
    await stage.finish()
    records = {record.turn: record for record in stage.outbox.records}
    assert {record.status for record in records.values()} == {"completed"}
    siblings = [records[n] for n in range(1, 5)]
    assert max(one.sent_ns for one in siblings) <= min(one.done_ns for one in siblings)
    assert records[5].sent_ns >= max(one.done_ns for one in siblings)
    assert records[5].due_ns == max(one.done_ns for one in siblings)


async def test_first_turns_of_a_conversation_begin_side_by_side(kept_outbox):
    backend = GraphBackend({f"q{n}": "gate" for n in range(3)}, gate=3)
    source = Conversation((turn(0), turn(1), turn(2), turn(3, 0, 1, 2)))
    stage = Stage(kept_outbox(), [source], backend)
    stage.worker.take_grants(Grants(0, 0, 1))
    await stage.finish()
    assert [record.status for record in stage.outbox.records] == ["completed"] * 4


async def test_one_slot_is_enough_for_any_graph(kept_outbox):
    backend = GraphBackend({f"q{n}": "wait" for n in range(6)})
    stage = Stage(kept_outbox(), [fan(4)] * 3, backend, slots=1, limit=1)
    stage.worker.take_grants(Grants(0, 0, 3))
    await stage.finish()
    assert len(stage.outbox.records) == 18
    assert backend.most_running == 1
    assert sorted(stage.outbox.ended) == [0, 1, 2]


async def test_branches_that_do_not_wait_for_a_failed_turn_go_on(kept_outbox):
    """L6: what waits for it is cancelled and recorded, the rest completes."""
    source = Conversation((turn(0), turn(1, 0), turn(2, 0), turn(3, 1), turn(4, 2), turn(5, 3, 4)))
    stage = Stage(kept_outbox(), [source], GraphBackend({"q1": "fail"}))
    stage.worker.take_grants(Grants(0, 0, 1))
    await stage.finish()
    assert {record.turn: record.status for record in stage.outbox.records} == {
        0: "completed",
        1: "errored",
        2: "completed",
        3: "cancelled",
        4: "completed",
        5: "cancelled",
    }
    assert stage.outbox.ended == [0]


ACTIONS = ["answer", "answer", "answer", "wait", "fail", "raise", "hang"]


@given(
    sources=st.lists(graphs(most=6), min_size=1, max_size=5),
    actions=st.lists(st.sampled_from(ACTIONS), min_size=6, max_size=6),
    slots=st.integers(1, 5),
    limit=st.none() | st.integers(1, 3),
    closed=st.booleans(),
    stop_after_ms=st.integers(0, 12),
)
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_turn_of_a_random_graph_ends_exactly_once_under_faults_and_stops(
    kept_outbox, sources, actions, slots, limit, closed, stop_after_ms
):
    """L5, L6, traps 31, 35, 36."""
    script = {f"q{number}": action for number, action in enumerate(actions)}

    async def scenario():
        stage = Stage(kept_outbox(), sources, GraphBackend(script), slots=slots, limit=limit)
        if closed:
            stage.worker.take_grants(Grants(0, 0, len(sources)))
        else:
            due = array("q", [stage.start_ns + n * MS for n in range(len(sources))])
            stage.worker.take_arrivals(Arrivals(0, 0, 1, due.tobytes()))
        await asyncio.sleep(stop_after_ms / 1_000)
        await stage.finish(cut=True)
        return stage

    stage = asyncio.run(scenario())
    records = {(one.index, one.turn): one for one in stage.outbox.records}
    assert len(records) == len(stage.outbox.records), "a turn ended twice"
    ended, dropped = stage.outbox.ended, stage.outbox.dropped
    assert sorted(ended + dropped) == list(range(len(sources)))
    assert set(records) == {(n, t) for n in ended for t in range(len(sources[n].turns))}
    assert stage.backend.running == 0
    assert stage.backend.most_running <= slots
    for (index, number), record in records.items():
        own = sources[index].turns[number]
        for parent, edge_s in zip(own.links.after, own.links.think_times_s, strict=True):
            before = records[index, parent]
            if record.sent_ns is None:
                continue
            assert before.status == "completed"
            think_s = own.think_time_s if edge_s is None else edge_s
            assert record.due_ns >= before.done_ns + round(think_s * 1e9)
            assert record.sent_ns >= record.due_ns


def test_links_are_plain_data():
    links = Links((0, 1), (None, 2.0), (), {"a": 0})
    assert msgspec.json.decode(msgspec.json.encode(links), type=Links) == links
