from __future__ import annotations

import random

import pytest

from headway.report.gaps import RELATIVE_ERROR, GapHistogram
from headway.report.quantiles import PER_MILLE, percentile


@pytest.mark.parametrize("scale_ns", [50, 3_000, 5_000_000, 40_000_000_000])
def test_percentiles_keep_the_stated_relative_error(scale_ns: int) -> None:
    """L12: bounded memory costs at most 0.4%."""
    rng = random.Random(scale_ns)
    gaps = [int(rng.lognormvariate(0, 1.5) * scale_ns) + 1 for _ in range(60_000)]
    histogram = GapHistogram()
    for start in range(0, len(gaps), 100):
        histogram.add(gaps[start : start + 100])
    summary = histogram.summary()
    assert summary is not None
    ordered = sorted(gaps)
    for name, per_mille in PER_MILLE.items():
        exact_s = percentile(ordered, per_mille) / 1e9
        # One nanosecond is the resolution of the stamps themselves.
        assert getattr(summary, f"{name}_s") == pytest.approx(exact_s, rel=RELATIVE_ERROR, abs=1e-9)


def test_count_mean_and_extremes_are_exact() -> None:
    histogram = GapHistogram()
    histogram.add([1_000_003, 7, 999_999_937])
    histogram.add([0])
    summary = histogram.summary()
    assert summary is not None
    assert summary.count == 4
    assert summary.mean_s == pytest.approx((1_000_003 + 7 + 999_999_937) / 4 / 1e9)
    assert (summary.min_s, summary.max_s) == (0.0, 0.999999937)


def test_trap_54_a_bucket_does_not_push_a_percentile_beyond_the_extremes() -> None:
    for gap in (5, 127, 128, 129, 1_000_001, 123_456_789):
        histogram = GapHistogram()
        histogram.add([gap])
        summary = histogram.summary()
        assert summary is not None
        assert summary.p50_s == summary.p999_s == summary.max_s == gap / 1e9


def test_memory_does_not_grow_with_the_number_of_gaps() -> None:
    rng = random.Random(3)
    histogram = GapHistogram()
    for _ in range(600):
        histogram.add([rng.randrange(1, 10_000_000_000) for _ in range(200)])
    histogram.summary()
    # 33 powers of two up to 10 s, 128 buckets each.
    assert len(histogram._buckets) <= 34 * 128
    assert len(histogram._pending) == 0


def test_no_gap_gives_no_summary() -> None:
    assert GapHistogram().summary() is None
