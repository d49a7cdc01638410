from __future__ import annotations

import math
import random
from statistics import fmean, pstdev, pvariance

import pytest

from headway.compare.autocorrelation import Memory, memory
from headway.compare.samples import MAX_BLOCKS, MIN_BLOCKS, block_count


def fading(fade: float, count: int, rng: random.Random) -> list[float]:
    """An autoregressive series; its integrated time is (1 + fade) / (1 − fade)."""
    values = [rng.gauss(0, 1)]
    while len(values) < count:
        values.append(fade * values[-1] + math.sqrt(1 - fade * fade) * rng.gauss(0, 1))
    return values


@pytest.mark.parametrize("fade", [0.0, 0.5, 0.8])
def test_the_time_is_that_of_the_process(fade: float) -> None:
    rng = random.Random(3)
    times = [memory(fading(fade, 2_000, rng)).time for _ in range(20)]
    assert sum(times) / len(times) == pytest.approx((1 + fade) / (1 - fade), rel=0.1)


def test_its_standard_error_is_how_far_it_scatters() -> None:
    rng = random.Random(5)
    found = [memory(fading(0.5, 1_000, rng)) for _ in range(60)]
    scatter = pstdev([one.time for one in found])
    assert fmean(one.error for one in found) == pytest.approx(scatter, rel=0.4)
    assert found[0].cautious == found[0].time + found[0].error


def test_a_constant_series_remembers_nothing() -> None:
    assert memory([0.1] * 50) == Memory(1.0)
    assert memory([]) == Memory(1.0)


def test_without_memory_there_are_the_most_blocks_and_they_show_all_variance() -> None:
    count = block_count(1.0)
    assert (count.blocks, count.variance_share) == (MAX_BLOCKS, 1.0)


def test_a_longer_memory_leaves_fewer_and_then_too_few_blocks() -> None:
    assert block_count(4.0).blocks == 20
    assert block_count(11.0).blocks < MIN_BLOCKS


@pytest.mark.parametrize("fade", [0.3, 0.7])
def test_the_variance_that_blocks_hide_is_as_computed(fade: float) -> None:
    rng = random.Random(4)
    time = (1 + fade) / (1 - fade)
    count = block_count(time)
    length = 400 // count.blocks
    series = fading(fade, 200 * 400, rng)
    means = [fmean(series[i : i + length]) for i in range(0, len(series), length)]
    assert length * pvariance(means) / time == pytest.approx(count.variance_share, rel=0.05)
