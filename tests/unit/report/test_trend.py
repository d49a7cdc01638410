from __future__ import annotations

import random
from typing import Any

import pytest

from headway.core.clock import NS_PER_S
from headway.report.columns import Columns
from headway.report.in_flight import InFlight
from headway.report.trend import mann_kendall_z, trends
from headway.report.verdict import MAX_CHANGE_SHARE, TREND_Z
from headway.report.window import MeasuredWindow


def test_the_statistic_of_a_monotonic_sequence_is_the_textbook_value() -> None:
    # S = 45 for ten rising values; its variance is 10·9·25/18 = 125; z = 44/√125.
    assert mann_kendall_z(list(range(10))) == pytest.approx(44 / 125**0.5)
    assert mann_kendall_z(list(range(10, 0, -1))) == pytest.approx(-44 / 125**0.5)


def test_ties_shrink_the_variance() -> None:
    # One tie of two: 125 − 2·1·9/18 = 124; S = 44.
    assert mann_kendall_z([0, 0, 2, 3, 4, 5, 6, 7, 8, 9]) == pytest.approx(43 / 124**0.5)


def test_equal_values_have_no_trend() -> None:
    assert mann_kendall_z([3.0] * 10) == 0.0


def _found(make: Any, ttft_s: Any, count: int = 1000) -> dict[str, Any]:
    columns = Columns()
    for i in range(count):
        columns.extend([make.completed(i, i * 20 / count, ttft_s=ttft_s(i / count))])
    in_flight = InFlight(columns, 20 * NS_PER_S)
    window = MeasuredWindow(0, 20 * NS_PER_S, "sending_ended")
    return {trend.measure: trend for trend in trends(columns, in_flight, window)}


def test_a_growing_wait_is_a_trend_of_all_three_measures(make: Any) -> None:
    found = _found(make, lambda share: 0.02 + share)
    assert set(found) == {"ttft_s", "response_s", "in_flight"}
    for trend in found.values():
        assert trend.z > TREND_Z
        assert trend.change_share > MAX_CHANGE_SHARE


def test_too_few_requests_in_a_block_give_no_trend(make: Any) -> None:
    assert _found(make, lambda _share: 0.02, count=40) == {}


def test_noise_alone_is_called_a_trend_about_as_often_as_stated(make: Any) -> None:
    """The false-alarm rate of the test alone is 1 in 100; 120 seeded stages may show up to 5."""
    alarms = 0
    for seed in range(120):
        rng = random.Random(seed)
        trend = _found(make, lambda _s, rng=rng: rng.lognormvariate(-4, 0.5), count=100)["ttft_s"]
        alarms += abs(trend.z) > TREND_Z
    assert alarms <= 5
