from __future__ import annotations

import random
from typing import Any

import pytest

from headway.report.columns import Columns
from headway.report.in_flight import InFlight
from headway.report.window import MeasuredWindow

S = 1_000_000_000


def _columns(make: Any, intervals: list[tuple[int, int | None]]) -> Columns:
    columns = Columns()
    for index, (sent, done) in enumerate(intervals):
        columns.extend([make.completed(index, 0.0, sent_ns=sent, done_ns=done)])
    return columns


def test_concurrency_is_weighted_by_time(make: Any) -> None:
    columns = _columns(make, [(0, 10 * S), (4 * S, 6 * S)])
    found = InFlight(columns, 10 * S).over(MeasuredWindow(0, 10 * S, "sending_ended"))
    assert found is not None
    assert found.mean == pytest.approx(1.2)
    assert found.max == 2


def test_an_end_and_a_start_in_the_same_instant_do_not_overlap(make: Any) -> None:
    columns = _columns(make, [(i * S, (i + 1) * S) for i in range(5)])
    found = InFlight(columns, 5 * S).over(MeasuredWindow(0, 5 * S, "sending_ended"))
    assert found is not None
    assert found.max == 1
    assert found.mean == pytest.approx(1.0)


def test_a_request_without_an_end_is_in_flight_until_the_stage_ends(make: Any) -> None:
    columns = _columns(make, [(2 * S, None)])
    found = InFlight(columns, 4 * S).over(MeasuredWindow(0, 4 * S, "sending_ended"))
    assert found is not None
    assert found.mean == pytest.approx(0.5)


def test_mean_and_maximum_equal_a_count_at_every_moment(make: Any) -> None:
    """L12: exact from the events, compared with brute force."""
    rng = random.Random(11)
    intervals = [
        (start, start + rng.randrange(1, 400))
        for start in (rng.randrange(0, 2_000) for _ in range(300))
    ]
    window = MeasuredWindow(500, 1_500, "sending_ended")
    levels = [sum(a <= t < b for a, b in intervals) for t in range(500, 1_501)]
    found = InFlight(_columns(make, intervals), 3_000).over(window)
    assert found is not None
    assert found.mean == pytest.approx(sum(levels[:-1]) / 1_000)
    assert found.max == max(levels)


def test_nothing_sent_has_no_concurrency(make: Any) -> None:
    columns = Columns()
    columns.extend([make.never_sent(0, 1.0)])
    assert InFlight(columns, S).over(MeasuredWindow(0, S, "sending_ended")) is None
