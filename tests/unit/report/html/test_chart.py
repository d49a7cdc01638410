from __future__ import annotations

import itertools
import re

import pytest

from headway.report.html.chart import (
    LEFT,
    RIGHT,
    WIDTH,
    BarChart,
    Line,
    LineChart,
    draw_bars,
    draw_lines,
)

_LETTERS = 24
"""Pixels of a percentile's name."""


def _points(marks: list[bool] | None) -> list[float]:
    chart = LineChart(
        title="Waits",
        x=[10.0, 20.0, 40.0],
        lines=[Line("p50", [1.0, 2.0, 3.0], 1, marks=marks)],
        x_label="requests per second",
        y_unit="ms",
        table="In the table.",
    )
    return [float(at) for at in re.findall(r'<circle cx="([\d.]+)"', draw_lines(chart))]


def test_points_keep_off_the_axis_and_off_the_edge() -> None:
    first, *_, last = _points([True, False, True])
    assert first >= LEFT + 5
    assert last <= WIDTH - RIGHT - 5


@pytest.mark.parametrize(
    "values", [(10, 50, 90), (50, 92, 99), (97, 98, 99), (1, 2, 3), (50, 88, 90)]
)
def test_names_of_percentiles_never_lie_on_one_another(values: tuple[float, ...]) -> None:
    chart = BarChart(
        title="Waits",
        edges=[0.0, 50.0, 100.0],
        counts=[3, 4],
        x_label="ms",
        markers=list(zip(("p50", "p90", "p99"), values, strict=True)),
        table="In the table.",
    )
    names = re.findall(r'<text x="([\d.]+)" y="[\d.]+" class="tick( end)?">p', draw_bars(chart))
    starts = sorted(float(x) - (_LETTERS if end else 0) for x, end in names)
    assert starts
    assert all(b - a >= _LETTERS for a, b in itertools.pairwise(starts))
