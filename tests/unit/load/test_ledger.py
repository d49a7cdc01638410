"""The ledger of what is out at workers."""

from __future__ import annotations

from array import array

import pytest

from headway.load.ledger import Ledger, Unfinished


def numbers(*values):
    return array("q", values).tobytes()


def test_what_did_not_come_back_is_unfinished():
    ledger = Ledger()
    ledger.hand_out(0, [0, 2, 4], [10, 20, 30])
    ledger.hand_out(1, [1, 3], [15, 25])
    ledger.report(0, numbers(2), [], b"")
    assert ledger.worker_lost(0) == [Unfinished(0, 10), Unfinished(4, 30)]
    assert ledger.outstanding(1) == 2
    assert ledger.ended == 1


def test_ended_turns_of_an_open_conversation_are_remembered():
    ledger = Ledger()
    ledger.hand_out(0, [7], [10])
    ledger.report(0, b"", [(7, 0), (7, 1)], b"")
    assert ledger.worker_lost(0) == [Unfinished(7, 10, frozenset({0, 1}))]


def test_dropped_arrivals_were_never_offered():
    ledger = Ledger()
    ledger.hand_out(0, [1, 2], [10, 20])
    ledger.report(0, numbers(1), [], numbers(2))
    assert ledger.ended == 1
    assert ledger.worker_lost(0) == []


def test_an_arrival_reported_twice_is_a_bug_that_is_seen():
    """Trap 35: requests were reported twice at the deadline."""
    ledger = Ledger()
    ledger.hand_out(0, [1], [10])
    ledger.report(0, numbers(1), [], b"")
    with pytest.raises(KeyError):
        ledger.report(0, numbers(1), [], b"")


def test_worker_0_is_a_worker_like_any_other():
    """Trap 37: `index or default` renamed worker 0."""
    ledger = Ledger()
    ledger.hand_out(0, [0], [0])
    assert ledger.outstanding(0) == 1
    assert ledger.worker_lost(0) == [Unfinished(0, 0)]
