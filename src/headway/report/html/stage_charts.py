"""The pictures of one stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from headway.report.html.chart import BarChart, Line, LineChart, Values, draw_bars, draw_lines
from headway.report.html.markup import Markup, fragment, tag
from headway.report.model import Curve, DurationSummary, Series, StageReport

_TABLE = "The same numbers stand in the stage's tables."
_SECONDS_FROM_MS = 10_000
"""Durations whose largest is above ten seconds are drawn in seconds."""


def stage_charts(stage: StageReport) -> Markup:
    """All charts of a stage that has any."""
    series = stage.series
    figures = [
        _distribution("Time to first token", stage.curves.ttft, stage.ttft, 1),
        _distribution("Service latency", stage.curves.latency, stage.latency, 2),
        _distribution("Response time", stage.curves.response, stage.response, 3),
    ]
    if series is not None:
        figures += _over_time(series, _outside(stage, series))
    return tag("div", figures, class_="charts")


def _distribution(
    title: str, curve: Curve | None, summary: DurationSummary | None, tone: int
) -> Markup:
    if curve is None or summary is None:
        return fragment()
    unit, factor = _unit([summary.max_s])
    return draw_bars(
        BarChart(
            title=title,
            edges=[edge * factor for edge in curve.histogram.edges_s],
            counts=curve.histogram.counts,
            x_label=unit,
            markers=[
                (name, getattr(summary, f"{name}_s") * factor) for name in ("p50", "p90", "p99")
            ],
            table=_TABLE,
            tone=tone,
        )
    )


def _over_time(series: Series, shaded: Sequence[tuple[float, float]]) -> list[Markup]:
    figures = [
        _line_figure(
            "Requests per second",
            series,
            shaded,
            "requests/s",
            [
                Line("offered", series.offered_per_s, 6, dashed=True),
                Line("sent", series.sent_per_s, 3),
                Line("completed", series.completed_per_s, 1),
            ],
        ),
        _line_figure(
            "Requests in flight", series, shaded, "mean", [Line("mean", series.in_flight_mean, 4)]
        ),
        _durations_figure(
            "Time to first token over time",
            series,
            shaded,
            [("p50", series.ttft_p50_s, 1), ("p99", series.ttft_p99_s, 2)],
        ),
        _durations_figure(
            "Latency over time",
            series,
            shaded,
            [
                ("service p50", series.latency_p50_s, 1),
                ("service p99", series.latency_p99_s, 2),
                ("response p99", series.response_p99_s, 3),
            ],
        ),
        _durations_figure(
            "Lateness",
            series,
            shaded,
            [
                ("p50", series.lateness_p50_s, 1),
                ("p99", series.lateness_p99_s, 2),
                ("worker's event loop, worst", series.loop_lag_max_s, 6),
            ],
        ),
    ]
    if series.output_tokens_per_s is not None:
        figures.append(
            _line_figure(
                "Output tokens per second",
                series,
                shaded,
                "tokens/s",
                [Line("output tokens", series.output_tokens_per_s, 3)],
            )
        )
    if any(series.errored_per_s):
        figures.append(
            _line_figure(
                "Errors per second",
                series,
                shaded,
                "errors/s",
                [Line("errors", series.errored_per_s, 5)],
                step=True,
            )
        )
    return figures


def _line_figure(
    title: str,
    series: Series,
    shaded: Sequence[tuple[float, float]],
    y_unit: str,
    lines: Sequence[Line],
    *,
    kind: Literal["plain", "duration"] = "plain",
    step: bool = False,
) -> Markup:
    return draw_lines(
        LineChart(
            title=title,
            x=series.start_s,
            lines=lines,
            x_label="s since the stage began",
            y_unit=y_unit,
            table=_TABLE,
            shaded=shaded,
            may_be_log=kind == "duration",
            step=step,
        )
    )


def _durations_figure(
    title: str,
    series: Series,
    shaded: Sequence[tuple[float, float]],
    columns: Sequence[tuple[str, Values, int]],
) -> Markup:
    present = [column for column in columns if any(v is not None for v in column[1])]
    if not present:
        return fragment()
    unit, factor = _unit([v for _, values, _ in present for v in values if v is not None])
    lines = [
        Line(label, [None if v is None else v * factor for v in values], tone, dashed=tone == 6)
        for label, values, tone in present
    ]
    return _line_figure(title, series, shaded, unit, lines, kind="duration")


def _unit(values_s: Sequence[float]) -> tuple[str, float]:
    highest_ms = max(values_s, default=0.0) * 1000
    return ("s", 1.0) if highest_ms > _SECONDS_FROM_MS else ("ms", 1000.0)


def _outside(stage: StageReport, series: Series) -> list[tuple[float, float]]:
    last = series.start_s[-1]
    window = stage.window
    return [(0.0, window.start_s), (min(window.end_s, last), last)]
