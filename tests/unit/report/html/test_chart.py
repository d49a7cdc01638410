from __future__ import annotations

import re

from headway.report.html.chart import LEFT, RIGHT, WIDTH, Line, LineChart, draw_lines


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
