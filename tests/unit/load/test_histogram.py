"""Sparse logarithmic histograms."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headway.load.histogram import Histogram, bucket_middle, bucket_of


@given(st.integers(0, 10**15))
def test_a_value_is_within_1_6_percent_of_its_buckets_middle(value):
    assert abs(bucket_middle(bucket_of(value)) - value) <= value * 0.016


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_buckets_keep_the_order_of_values(a, b):
    low, high = sorted((a, b))
    assert bucket_of(low) <= bucket_of(high)


def test_negative_values_fall_into_the_lowest_bucket():
    assert bucket_of(-5) == 0


def test_quantiles_of_merged_counts_are_those_of_all_values():
    histogram = Histogram()
    for start in (0, 500):
        counts = {}
        for value in range(start * 1_000, (start + 500) * 1_000, 1_000):
            counts[bucket_of(value)] = counts.get(bucket_of(value), 0) + 1
        histogram.merge(counts)
    median = histogram.quantile(0.5)
    assert median is not None
    assert abs(median - 500_000) < 500_000 * 0.02


def test_an_empty_histogram_has_no_quantile():
    """Missing is None, never 0 (trap 45)."""
    assert Histogram().quantile(0.5) is None
