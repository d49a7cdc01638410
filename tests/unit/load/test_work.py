"""The work queue: what is taken when, and what becomes of the rest."""

from __future__ import annotations

from array import array

import pytest

from headway.backends.backend import Answer
from headway.load.work import WorkQueue


@pytest.fixture
def make_queue(listed_inputs):
    def make(turns=None, *, limit=None, start_ns=0, end_ns=None):
        return WorkQueue(listed_inputs(turns), limit, start_ns, end_ns)

    return make


def due(*times):
    return array("q", times).tobytes()


def after(first, ended_ns):
    """What follows the first turn of a chain."""
    return first.conversation.turns_after(first, Answer(), ended_ns)


def indices(turns):
    return [turn.conversation.index for turn in turns]


def test_an_arrival_is_taken_at_its_due_time_and_not_before(make_queue):
    queue = make_queue()
    queue.add_arrivals(0, 1, due(10, 20))
    assert queue.take(9) is None
    assert queue.next_due_ns() == 10
    turn = queue.take(10)
    assert turn.due_ns == 10
    assert queue.take(10) is None
    assert queue.next_due_ns() == 20


def test_a_late_arrival_keeps_its_due_time(make_queue):
    """Trap 27: at the cap requests were skipped or re-anchored."""
    queue = make_queue()
    queue.add_arrivals(0, 1, due(*range(0, 1_000, 10)))
    assert [queue.take(5_000).due_ns for _ in range(100)] == list(range(0, 1_000, 10))


def test_a_ready_turn_goes_before_a_new_conversation(make_queue):
    """Trap 31: slots waited for new work while the next turn was ready."""
    queue = make_queue([2, 1])
    queue.add_grants(0, 2)
    first = queue.take(5)
    queue.add_ready(after(first, 5))
    assert queue.take(5).number == 1
    assert queue.take(5).conversation.index == 1


def test_a_thinking_turn_does_not_keep_others_waiting(make_queue):
    queue = make_queue([2, 1])
    queue.add_arrivals(0, 1, due(0, 50))
    first = queue.take(0)
    queue.add_ready(after(first, 100))
    assert queue.next_due_ns() == 50
    assert queue.take(50).conversation.index == 1
    assert queue.next_due_ns() == 100


def test_open_conversations_bound_new_ones_but_not_turns(make_queue):
    queue = make_queue([2, 1], limit=1)
    queue.add_arrivals(0, 1, due(0, 0))
    first = queue.take(0)
    assert queue.take(0) is None
    assert queue.next_due_ns() is None, "time alone brings nothing"
    queue.add_ready(after(first, 5))
    assert queue.next_due_ns() == 5
    assert queue.take(5).number == 1
    queue.conversation_ended()
    assert queue.take(5).conversation.index == 1


def test_granted_work_is_due_when_it_is_taken_and_not_before_the_start(make_queue):
    """Trap 30: a start event came before the start time; requests were due in 1970."""
    queue = make_queue(start_ns=1_000)
    queue.add_grants(0, 2)
    assert queue.take(999) is None
    assert queue.next_due_ns() == 1_000
    assert queue.take(1_000).due_ns == 1_000
    assert queue.take(1_234).due_ns == 1_234


def test_nothing_is_taken_from_the_end_on(make_queue):
    queue = make_queue(end_ns=100)
    queue.add_grants(0, 10)
    assert queue.take(99) is not None
    assert queue.take(100) is None


def test_the_cut_tells_offered_from_not_offered(make_queue):
    """What fell due before the end is recorded, what falls due later never was offered."""
    queue = make_queue()
    queue.add_arrivals(0, 1, due(0, 10, 20, 30))
    queue.prepare_one(2)
    assert indices(queue.cut(20)) == [0, 1]
    assert queue.dropped == [2, 3]
    assert queue.is_empty
    assert queue.take(50) is None


def test_the_cut_keeps_prepared_arrivals_apart_as_well(make_queue):
    queue = make_queue()
    queue.add_arrivals(0, 1, due(0, 10, 20))
    while queue.prepare_one(8):
        pass
    assert indices(queue.cut(10)) == [0]
    assert queue.dropped == [1, 2]


def test_waiting_turns_are_cut_and_grants_not_begun_are_dropped(make_queue):
    queue = make_queue([2])
    queue.add_grants(0, 3)
    first = queue.take(0)
    queue.add_ready(after(first, 1_000))
    assert [turn.number for turn in queue.cut(10)] == [1]
    assert queue.dropped == [1, 2]


def test_inputs_that_end_drop_what_comes_after(make_queue):
    """Trap 32: an input that found its end after the last event hung."""
    queue = make_queue([1, 1])
    queue.add_grants(0, 5)
    assert [queue.take(0).conversation.index for _ in range(2)] == [0, 1]
    assert queue.take(0) is None
    assert queue.exhausted_at == 2
    assert queue.dropped == [2, 3, 4]
    assert queue.is_empty


def test_inputs_that_raise_make_a_failed_request_and_not_a_broken_worker():
    class Raising:
        def conversation(self, index):
            raise ValueError("row 7 has no prompt")

        def close(self):
            pass

    queue = WorkQueue(Raising(), None, 0)
    queue.add_grants(0, 1)
    turn = queue.take(0)
    assert isinstance(turn.input_error, ValueError)
    assert not turn.leads_on


def test_content_is_prepared_ahead_up_to_a_limit(make_queue):
    queue = make_queue()
    queue.add_arrivals(0, 1, due(*range(10)))
    assert [queue.prepare_one(3) for _ in range(4)] == [True, True, True, False]
    assert [queue.take(100).conversation.index for _ in range(10)] == list(range(10))
