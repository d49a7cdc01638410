"""Handing out: partition by index, bounded ahead, grants on demand."""

from __future__ import annotations

from array import array
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.clock import NS_PER_MS, NS_PER_S
from headway.load.arrivals import PoissonArrivals, arrival_rng
from headway.load.handout import (
    ClosedLoopHandout,
    HandoutLimits,
    OpenLoopHandout,
    divide,
)
from headway.load.ledger import Ledger, Unfinished
from headway.load.messages import Arrivals


class Receiver:
    def __init__(self, number):
        self.number = number
        self.messages = []

    def send(self, message):
        self.messages.append(message)

    def arrivals(self):
        received = []
        for message in self.messages:
            assert isinstance(message, Arrivals)
            due = array("q")
            due.frombytes(message.due_ns)
            last = message.first + message.step * len(due)
            received += zip(range(message.first, last, message.step), due, strict=True)
        return received

    def granted(self):
        return [index for m in self.messages for index in range(m.first, m.first + m.count)]


def every_ms(start=0):
    return (index * NS_PER_MS for index in count(start))


def open_loop(schedule, *, ahead_s=1.0, most=None, end_ns=None, start_ns=0):
    ledger = Ledger()
    limits = HandoutLimits(most, end_ns, ahead_s)
    return OpenLoopHandout(0, iter(schedule), start_ns, limits, ledger), ledger


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_the_schedule_is_the_same_for_any_number_of_workers(workers):
    """L3, trap 26: one generator, partitioned by index."""
    schedule = PoissonArrivals(1_000).offsets_ns(arrival_rng(5, 0))
    handout, _ = open_loop(schedule, most=2_000)
    receivers = [Receiver(number) for number in range(workers)]
    now_ns = 0
    while not handout.is_finished:
        handout.advance(receivers, now_ns)
        now_ns += NS_PER_S // 10
    expected_schedule = PoissonArrivals(1_000).offsets_ns(arrival_rng(5, 0))
    merged = sorted(pair for receiver in receivers for pair in receiver.arrivals())
    assert merged == [(index, next(expected_schedule)) for index in range(2_000)]
    for receiver in receivers:
        assert {index % workers for index, _ in receiver.arrivals()} == {receiver.number}


def test_no_arrival_is_given_out_further_ahead_than_asked():
    """L4: how far ahead a request is handed out is bounded and configurable."""
    handout, _ = open_loop(every_ms(), ahead_s=0.05)
    receiver = Receiver(0)
    handout.advance([receiver], 0)
    assert max(due for _, due in receiver.arrivals()) == 50 * NS_PER_MS
    handout.advance([receiver], 10 * NS_PER_MS)
    assert max(due for _, due in receiver.arrivals()) == 60 * NS_PER_MS


def test_an_overloaded_worker_is_not_given_the_whole_schedule():
    """Trap 40: what waits at a worker is bounded however late it is."""
    handout, ledger = open_loop((0 for _ in range(200_000)), ahead_s=1.0)
    receiver = Receiver(0)
    handout.advance([receiver], 0)
    handout.advance([receiver], NS_PER_S)
    assert ledger.outstanding(0) == 50_000
    waiting = list(handout.unsent_before(1))
    assert [index for index, _ in waiting] == list(range(50_000, 200_000))


def test_nothing_due_at_the_end_or_later_is_given_out():
    handout, _ = open_loop(every_ms(), end_ns=20 * NS_PER_MS)
    receiver = Receiver(0)
    handout.advance([receiver], 0)
    assert len(receiver.arrivals()) == 20
    assert not handout.is_finished, "the end of time is the stop rule's to decide"


def test_the_end_of_the_schedule_is_told_apart_from_the_last_request():
    handout, _ = open_loop([1, 2, 3], most=10)
    handout.advance([Receiver(0)], 0)
    assert handout.is_finished
    assert handout.schedule_ended
    counted, _ = open_loop(every_ms(), most=3)
    counted.advance([Receiver(0)], 0)
    assert counted.is_finished
    assert not counted.schedule_ended


def test_arrivals_of_a_dead_worker_that_are_not_due_go_to_the_others():
    handout, ledger = open_loop(every_ms(), most=10)
    dead, alive = Receiver(0), Receiver(1)
    handout.advance([dead, alive], 0)
    back = [a for a in ledger.worker_lost(0) if handout.takes_back(a, 4 * NS_PER_MS)]
    assert [arrival.index for arrival in back] == [6, 8]
    handout.give_again([alive], back)
    assert sorted(index for index, _ in alive.arrivals()) == [1, 3, 5, 6, 7, 8, 9]


def closed_loop(slots, most=None):
    ledger = Ledger()
    receivers = [Receiver(number) for number in slots]
    handout = ClosedLoopHandout(0, slots, HandoutLimits(most, None, 1.0), ledger)
    handout.begin(receivers, 0)
    return handout, receivers


def test_a_burst_is_spread_over_all_slots():
    """Trap 42, L4: 50 requests over 50 slots of two workers; none sits on another's work."""
    _, receivers = closed_loop({0: 25, 1: 25}, most=50)
    assert [len(receiver.granted()) for receiver in receivers] == [25, 25]


def test_fewer_requests_than_slots_are_shared_alike():
    _, receivers = closed_loop({0: 25, 1: 25}, most=10)
    assert [len(receiver.granted()) for receiver in receivers] == [5, 5]


def test_grants_grow_for_a_worker_that_asks_quickly_and_shrink_again():
    handout, (receiver,) = closed_loop({0: 8})
    now_ns = 0
    for _ in range(5):
        now_ns += NS_PER_MS
        handout.wanted(receiver, now_ns)
    quick = receiver.messages[-1].count
    for _ in range(6):
        now_ns += 2 * NS_PER_S
        handout.wanted(receiver, now_ns)
    assert quick > 16
    assert receiver.messages[-1].count < 4


@given(st.lists(st.integers(0, 3), max_size=200), st.integers(1, 300))
def test_limited_grants_cover_every_index_once_and_never_pass_the_limit(asks, most):
    handout, receivers = closed_loop({0: 3, 1: 3, 2: 2, 3: 1}, most=most)
    for position, worker in enumerate(asks):
        handout.wanted(receivers[worker], position * NS_PER_MS)
    given_out = sorted(index for receiver in receivers for index in receiver.granted())
    assert given_out == list(range(len(given_out)))
    assert len(given_out) <= most


def test_near_the_end_no_worker_is_granted_what_others_could_do():
    """Trap 42: prefetching workers hoarded."""
    handout, receivers = closed_loop({0: 1, 1: 1}, most=100)
    now_ns = 0
    while not handout.is_finished:
        now_ns += NS_PER_MS
        before = len(receivers[0].granted()) + len(receivers[1].granted())
        handout.wanted(receivers[0], now_ns)
        assert receivers[0].messages[-1].count <= max(1, (100 - before) // 4)


def test_a_lost_grant_is_not_given_again():
    """It may have been sent; sending it twice would load the target with more than was asked."""
    handout, _ = closed_loop({0: 1})
    assert not handout.takes_back(Unfinished(0, 0), 0)


def test_inputs_that_end_end_the_handing_out():
    limits = HandoutLimits(None, None, 1.0)
    handout = ClosedLoopHandout(0, {0: 1}, limits, Ledger())
    receiver = Receiver(0)
    handout.begin([receiver], 0)
    limits.exhausted_at(1)
    handout.wanted(receiver, 1)
    assert handout.is_finished
    assert receiver.granted() == [0]


@given(st.integers(0, 10_000), st.integers(1, 64))
def test_a_global_limit_is_divided_exactly(total, parts):
    shares = divide(total, parts)
    assert sum(shares) == total
    assert max(shares) - min(shares) <= 1


def test_a_worker_for_whom_there_is_nothing_is_sent_nothing():
    handout, _ = open_loop([1, 2], most=2)
    receivers = [Receiver(number) for number in range(3)]
    handout.advance(receivers, 0)
    assert [len(receiver.messages) for receiver in receivers] == [1, 1, 0]


def test_the_earliest_end_of_the_inputs_that_was_found_counts():
    """Two workers may find it at different arrivals; a limit below it stays."""
    limits = HandoutLimits(10, None, 1.0)
    limits.exhausted_at(7)
    limits.exhausted_at(9)
    assert limits.left(0) == 7
    limits.exhausted_at(4)
    assert limits.left(0) == 4
