from __future__ import annotations

import math
import random
from statistics import fmean

import pytest

from headway.compare.bootstrap import BlockedQuantile, BlockedRatio, estimate


def repeated(blocks: list[list[float]], weights: list[int]) -> list[float]:
    return sorted(v for block, w in zip(blocks, weights, strict=True) for v in block * w)


@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
def test_a_resample_s_quantile_is_that_of_the_repeated_values(share: float) -> None:
    rng = random.Random(5)
    blocks = [[rng.expovariate(1) for _ in range(rng.randrange(3, 9))] for _ in range(12)]
    data = BlockedQuantile(blocks, share)
    for _ in range(50):
        weights = [rng.randrange(3) for _ in blocks]
        values = repeated(blocks, weights)
        expected = values[max(0, math.ceil(share * len(values) - 1e-9) - 1)]
        assert data.statistic(weights) == expected


def test_candidates_thinned_out_keep_the_quantile_within_a_fraction_of_its_error() -> None:
    rng = random.Random(6)
    blocks = [[rng.gauss(0, 1) for _ in range(2_000)] for _ in range(20)]
    data = BlockedQuantile(blocks, 0.5)
    weights = [rng.randrange(3) for _ in blocks]
    values = repeated(blocks, weights)
    standard_error = 1.2533 / math.sqrt(40_000)
    middle = values[len(values) // 2]
    assert data.statistic(weights) == pytest.approx(middle, abs=standard_error / 4)


def test_the_quantile_of_all_blocks_is_exact() -> None:
    rng = random.Random(7)
    blocks = [[rng.random() for _ in range(500)] for _ in range(20)]
    assert BlockedQuantile(blocks, 0.99).statistic([1] * 20) == repeated(blocks, [1] * 20)[9_899]


def test_a_ratio_of_nothing_is_undefined() -> None:
    data = BlockedRatio([1.0, 0.0], [2.0, 0.0])
    assert data.statistic([1, 1]) == 0.5
    assert data.statistic([0, 2]) is None


def test_the_standard_error_is_that_of_theory() -> None:
    rng = random.Random(8)
    errors = []
    for _ in range(20):
        blocks = [fmean(rng.gauss(10, 1) for _ in range(25)) for _ in range(40)]
        found = estimate(BlockedRatio(blocks, [1.0] * 40), lambda value: value, rng)
        assert found is not None
        errors.append(found.standard_error)
    assert fmean(errors) == pytest.approx(1 / math.sqrt(1000), rel=0.1)


def test_what_has_no_logarithm_has_no_estimate() -> None:
    data = BlockedRatio([0.0] * 10, [1.0] * 10)
    assert estimate(data, math.log, random.Random(1)) is None
