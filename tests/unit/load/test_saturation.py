"""Saturation as a stop rule: found where a target falls behind, never where it keeps up (L7)."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable

import pytest

from headway.core.clock import NS_PER_S
from headway.load.histogram import bucket_of
from headway.load.messages import Counters
from headway.load.saturation import Saturation
from headway.load.spec import SaturationLimit
from headway.load.stop_rules import StageProgress, Stop

_TICK_S = 0.1


class Station:
    """`servers` equal servers and one queue before them, with exponential service."""

    def __init__(self, servers: int, service_s: float, rng: random.Random) -> None:
        self._free_at = [0.0] * servers
        self._service_s = service_s
        self._rng = rng

    def done_s(self, arrived_s: float) -> float:
        begin_s = max(arrived_s, heapq.heappop(self._free_at))
        end_s = begin_s + self._rng.expovariate(1 / self._service_s)
        heapq.heappush(self._free_at, end_s)
        return end_s


def stopped(
    rule: Saturation, due_s: list[float], done_s: Callable[[float], float], cap: int | None = None
) -> tuple[float, Stop] | None:
    """When, and with what, the rule stops a stage whose requests are due at these times."""
    progress = StageProgress()
    flying: list[tuple[float, float]] = []
    waiting, sent, now_s = list(reversed(due_s)), 0, 0.0
    while waiting or flying:
        now_s += _TICK_S
        counters = Counters()
        while True:
            ends_s = flying[0][0] if flying else float("inf")
            may_send = cap is None or len(flying) < cap
            sends_s = max(waiting[-1], 0.0) if waiting and may_send else float("inf")
            if min(ends_s, sends_s) > now_s:
                break
            if sends_s <= ends_s:
                due = waiting.pop()
                start_s = max(due, now_s - _TICK_S)
                heapq.heappush(flying, (done_s(start_s), start_s))
                sent += 1
                late = bucket_of(int((start_s - due) * NS_PER_S))
                counters.lateness[late] = counters.lateness.get(late, 0) + 1
            else:
                end_s, start_s = heapq.heappop(flying)
                took = bucket_of(int((end_s - start_s) * NS_PER_S))
                counters.latency[took] = counters.latency.get(took, 0) + 1
                counters.completed += 1
        progress.sent, progress.in_flight = sent, len(flying)
        progress.add(now_s, counters)
        stop = rule.evaluate(progress)
        if stop is not None:
            return now_s, stop
        if not waiting:
            return None
    return None


def poisson(rate: float, seconds: float, rng: random.Random) -> list[float]:
    due, at_s = [], 0.0
    while (at_s := at_s + rng.expovariate(rate)) < seconds:
        due.append(at_s)
    return due


def ramp(rate_to: float, seconds: float) -> list[float]:
    """From 0 to `rate_to`: request i is due when the area below the ramp reaches i."""
    count = int(rate_to * seconds / 2)
    return [(2 * i * seconds / rate_to) ** 0.5 for i in range(count)]


@pytest.mark.parametrize("seed", range(20))
def test_a_target_that_keeps_up_at_nine_tenths_of_its_capacity_is_never_called_saturated(
    seed: int,
) -> None:
    rng = random.Random(seed)
    station = Station(servers=20, service_s=0.5, rng=rng)
    due = poisson(36.0, 120.0, rng)
    assert stopped(Saturation(SaturationLimit()), due, station.done_s) is None


@pytest.mark.parametrize("seed", range(10))
def test_a_target_that_is_offered_a_third_too_much_is_found_within_a_minute(seed: int) -> None:
    rng = random.Random(seed)
    station = Station(servers=20, service_s=0.5, rng=rng)
    found = stopped(Saturation(SaturationLimit()), poisson(53.0, 120.0, rng), station.done_s)
    assert found is not None
    at_s, stop = found
    assert at_s < 60
    assert stop.reason == "saturated"
    assert stop.is_error_rule


def test_the_first_requests_of_a_slow_target_are_no_saturation() -> None:
    """In flight rises for 30 s, because nothing can have ended by then."""
    rng = random.Random(1)
    slow = lambda sent_s: sent_s + 30.0 + rng.random()  # noqa: E731
    assert stopped(Saturation(SaturationLimit()), poisson(20.0, 150.0, rng), slow) is None


def test_a_ramp_over_a_slow_target_that_keeps_up_is_no_saturation() -> None:
    rng = random.Random(2)
    slow = lambda sent_s: sent_s + 8.0 + rng.random()  # noqa: E731
    rule = Saturation(SaturationLimit(), rate_changes=True)
    assert stopped(rule, ramp(50.0, 60.0), slow) is None


def test_a_ramp_is_stopped_soon_after_it_has_passed_the_capacity() -> None:
    rng = random.Random(3)
    station = Station(servers=20, service_s=0.5, rng=rng)
    rule = Saturation(SaturationLimit(window_s=5), rate_changes=True)
    found = stopped(rule, ramp(80.0, 120.0), station.done_s)
    assert found is not None
    at_s = found[0]
    assert 60.0 < at_s < 90.0  # 40/s, the capacity, is reached after 60 s


def test_at_a_cap_the_growing_lateness_is_found() -> None:
    """Trap 27: at the concurrency cap an open loop must not silently become closed."""
    rng = random.Random(4)
    station = Station(servers=20, service_s=0.5, rng=rng)
    rule = Saturation(SaturationLimit(), cap=24)
    found = stopped(rule, poisson(60.0, 120.0, rng), station.done_s, cap=24)
    assert found is not None
    assert "lateness grew" in found[1].detail


def test_a_silent_target_is_left_to_other_rules() -> None:
    rule = Saturation(SaturationLimit())
    never = lambda sent_s: 1e9  # noqa: E731
    assert stopped(rule, poisson(20.0, 60.0, random.Random(5)), never) is None


def at_the_cap(lateness_s: Callable[[float], float | None]) -> Stop | None:
    """What the rule says of 30 s with every request that the cap allows in flight."""
    rule = Saturation(SaturationLimit(), cap=10)
    progress = StageProgress()
    for tick in range(1, 300):
        now_s = tick * _TICK_S
        late_s = lateness_s(now_s)
        counters = Counters(completed=10, latency={bucket_of(NS_PER_S // 10): 10})
        if late_s is not None:
            counters.lateness = {bucket_of(int(late_s * NS_PER_S)): 10}
        progress.sent, progress.in_flight = 10 * tick + 10, 10
        progress.add(now_s, counters)
        if (stop := rule.evaluate(progress)) is not None:
            return stop
    return None


def test_a_cap_that_is_reached_with_requests_on_time_is_no_saturation() -> None:
    """As many in flight as the cap allows, and still sent when due: the cap fits the load."""
    assert at_the_cap(lambda now_s: 0.001) is None
    assert at_the_cap(lambda now_s: 0.5 + 0.05 * now_s) is None
    assert at_the_cap(lambda now_s: 0.3 * now_s) is not None


def test_at_a_cap_nothing_is_said_while_nobody_has_told_how_late_requests_are() -> None:
    assert at_the_cap(lambda now_s: None) is None
