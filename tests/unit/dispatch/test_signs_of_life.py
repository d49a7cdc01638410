"""Who is silent, and who only seems to be (trap 22)."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import pytest

from headway.core.clock import ManualClock, monotonic_ns, ns_from_s
from headway.dispatch.signs_of_life import BEAT, Heartbeat, Silence

PATIENCE_S = 10.0


@pytest.fixture
def silence() -> Silence:
    return Silence(PATIENCE_S, ManualClock(datetime(2026, 1, 1, tzinfo=UTC)))


def test_silence_is_too_long_when_patience_is_over(silence: Silence) -> None:
    assert [silence.add(1.0) for _ in range(10)] == [False] * 9 + [True]


def test_a_sign_of_life_begins_the_count_anew(silence: Silence) -> None:
    for _ in range(100):
        for _ in range(9):
            assert not silence.add(1.0)
        silence.heard()
        assert not silence.add(1.0)


def test_a_suspended_machine_counts_as_one_step(silence: Silence) -> None:
    """Both were stopped for an hour and go on: the listener wakes before it hears the other."""
    silence.heard()
    assert not silence.add(1.0)
    assert not silence.add(3600.0)
    assert [silence.add(1.0) for _ in range(9)] == [False] * 8 + [True]


def test_a_heart_beats_beside_a_thread_that_is_busy() -> None:
    """Trap 22: whoever computes is not dead."""
    reading, writing = os.pipe()
    heart = Heartbeat(writing, interval_s=0.01)
    heart.start()
    stop_ns = monotonic_ns() + ns_from_s(0.3)
    while monotonic_ns() < stop_ns:
        sum(range(1000))
    heart.stop()
    assert os.read(reading, 65536).count(BEAT) >= 3
    os.close(reading)
    os.close(writing)


def test_a_heart_stops_when_nobody_listens() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    heart = Heartbeat(writing, interval_s=0.01)
    heart.start()
    heart._thread.join(30)
    assert not heart._thread.is_alive()
    os.close(writing)
