"""Arrival processes: shape, end, determinism."""

from __future__ import annotations

import math
import random
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.clock import NS_PER_S
from headway.load.arrivals import (
    ConstantArrivals,
    GammaArrivals,
    PoissonArrivals,
    RampArrivals,
    TraceArrivals,
    arrival_rng,
)


def first(process, count, seed=0):
    return list(islice(process.offsets_ns(arrival_rng(seed, 0)), count))


def test_constant_arrivals_are_computed_from_the_index_and_do_not_drift():
    """Trap 29: after ten minutes at an awkward rate the offset is exact to the nanosecond."""
    rate = 333.3
    index = 200_000
    offsets = first(ConstantArrivals(rate), index + 1)
    assert offsets[0] == 0
    assert offsets[index] == round(index * NS_PER_S / rate)


def test_constant_arrivals_are_evenly_spaced():
    """Trap 26: a "constant" timer drew exponential gaps."""
    gaps = [b - a for a, b in pairwise(first(ConstantArrivals(400), 1_000))]
    assert set(gaps) == {2_500_000}


@pytest.mark.parametrize("process", [PoissonArrivals(50), GammaArrivals(50, 2.0)])
def test_random_arrivals_repeat_for_a_seed_and_differ_between_seeds(process):
    assert first(process, 100, seed=3) == first(process, 100, seed=3)
    assert first(process, 100, seed=3) != first(process, 100, seed=4)


def test_stages_of_one_run_have_different_arrivals():
    assert arrival_rng(1, 0).random() != arrival_rng(1, 1).random()


@pytest.mark.parametrize("cv", [0.25, 1.0, 3.0])
def test_gamma_gaps_have_the_mean_and_the_coefficient_of_variation_asked_for(cv):
    offsets = first(GammaArrivals(200, cv), 40_001, seed=7)
    gaps = [(b - a) / NS_PER_S for a, b in pairwise(offsets)]
    mean = math.fsum(gaps) / len(gaps)
    sd = math.sqrt(math.fsum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert mean == pytest.approx(1 / 200, rel=0.05)
    assert sd / mean == pytest.approx(cv, rel=0.05)


def test_a_ramp_has_the_expected_number_of_arrivals_in_every_part():
    ramp = RampArrivals(0, 100, 10)
    offsets = list(ramp.offsets_ns(random.Random(0)))
    assert len(offsets) == 500
    for part in range(1, 11):
        expected = 100 * part**2 / 20
        arrived = sum(offset < part * NS_PER_S for offset in offsets)
        assert abs(arrived - expected) <= 1


def test_a_falling_ramp_ends_within_its_duration():
    offsets = list(RampArrivals(100, 0, 4).offsets_ns(random.Random(0)))
    assert len(offsets) == 200
    assert offsets[-1] < 4 * NS_PER_S


@given(
    start=st.floats(0, 500),
    end=st.floats(0, 500),
    duration=st.floats(0.1, 20),
)
def test_ramps_never_go_back_and_never_pass_their_end(start, end, duration):
    if start == end == 0:
        return
    offsets = list(RampArrivals(start, end, duration).offsets_ns(random.Random(0)))
    assert all(a <= b for a, b in pairwise(offsets))
    assert offsets[-1] <= duration * NS_PER_S * 1.000001 + 1


def test_a_trace_is_reproduced_and_scaled_from_its_first_arrival():
    trace = TraceArrivals([5_000, 6_000, 6_000, 9_500], time_scale=0.5)
    assert list(trace.offsets_ns(random.Random(0))) == [0, 500, 500, 2_250]


def test_an_empty_trace_ends_at_once():
    """Trap 32: empty inputs hung."""
    assert list(TraceArrivals([]).offsets_ns(random.Random(0))) == []
