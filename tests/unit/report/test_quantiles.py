from __future__ import annotations

import math
import random

import pytest

from headway.report.quantiles import (
    PER_MILLE,
    failures_as_infinite,
    percentile,
    samples_needed,
    summarise_durations,
    summarise_tokens,
)


def test_the_percentile_is_the_smallest_value_that_enough_values_do_not_exceed() -> None:
    rng = random.Random(7)
    for count in (1, 2, 3, 9, 10, 99, 100, 101, 1000):
        values = sorted(rng.random() for _ in range(count))
        for per_mille in PER_MILLE.values():
            found = percentile(values, per_mille)
            at_most = sum(value <= found for value in values)
            below = sum(value < found for value in values)
            assert at_most * 1000 >= per_mille * count
            assert below * 1000 < per_mille * count


def test_trap_54_no_percentile_is_above_the_maximum() -> None:
    rng = random.Random(54)
    for count in range(1, 400):
        summary = summarise_durations(sorted(rng.expovariate(1.0) for _ in range(count)))
        assert summary is not None
        points = [getattr(summary, f"{name}_s") for name in PER_MILLE]
        assert points == sorted(points)
        assert summary.min_s <= points[0]
        assert points[-1] <= summary.max_s
        assert summary.min_s <= summary.mean_s <= summary.max_s


def test_a_percentile_of_nothing_is_missing_and_not_zero() -> None:
    assert summarise_durations([]) is None
    assert summarise_tokens([]) is None


def test_a_percentile_is_trusted_once_the_sample_can_bound_it() -> None:
    assert [samples_needed(q) for q in (500, 900, 990, 999)] == [6, 36, 368, 3688]
    for per_mille in PER_MILLE.values():
        needed, q = samples_needed(per_mille), per_mille / 1000
        assert q**needed <= 0.025 < q ** (needed - 1)


def test_failures_count_as_infinite_beside_the_successes() -> None:
    """L12: 90 successes and 10 failures: p90 is the slowest success, p95 is infinite."""
    points = failures_as_infinite([i / 100 for i in range(1, 91)], failed=10)
    assert points is not None
    assert (points.count, points.failed) == (100, 10)
    assert points.p50_s == 0.5
    assert points.p90_s == 0.9
    assert points.p95_s == "Infinity"
    assert math.isinf(float(points.p99_s))


def test_without_failures_there_is_no_second_set_of_percentiles() -> None:
    assert failures_as_infinite([1.0, 2.0], failed=0) is None


def test_when_everything_failed_every_percentile_is_infinite() -> None:
    points = failures_as_infinite([], failed=3)
    assert points is not None
    assert {points.p50_s, points.p999_s} == {"Infinity"}


def test_token_totals_are_exact() -> None:
    summary = summarise_tokens([1, 2, 3, 10])
    assert summary is not None
    assert summary.total_tokens == 16
    assert summary.mean_tokens == pytest.approx(4)
    assert (summary.min_tokens, summary.p50_tokens, summary.max_tokens) == (1, 2, 10)
