"""The pictures of a run of several stages: how the target behaves as load grows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headway.report.html.chart import Line, LineChart, draw_lines
from headway.report.html.markup import Markup, fragment, tag
from headway.report.model import DurationSummary, Report, StageReport

_TABLE = "The same numbers stand in the table of stages."


def sweep_charts(report: Report) -> Markup:
    """Percentiles, throughput and concurrency over the load that was offered."""
    stages = sorted(
        (stage for stage in report.counted if stage.rates.offered_per_s is not None),
        key=_load,
    )
    if len(stages) < 2:
        return fragment()
    sweep = _Sweep(stages)
    figures = [
        sweep.durations("Time to first token", "ttft", ("p50", "p90", "p99")),
        sweep.durations("Response time", "response", ("p50", "p90", "p99")),
        sweep.durations("Time per output token", "tpot", ("p50", "p99")),
        sweep.completed(),
        sweep.good(),
        sweep.amounts("Output tokens", "tokens/s", lambda s: s.rates.output_tokens_per_s),
        sweep.amounts(
            "Requests in flight", "mean", lambda s: s.concurrency.mean if s.concurrency else None
        ),
    ]
    return tag(
        "section",
        tag("h2", "As load grows"),
        tag("p", sweep.note(), class_="note"),
        tag("div", figures, class_="charts"),
        id="load",
    )


def _load(stage: StageReport) -> float:
    return stage.rates.offered_per_s or 0.0


class _Sweep:
    """Draws one measure after another over the same stages, ascending by offered load."""

    def __init__(self, stages: Sequence[StageReport]) -> None:
        self._stages = stages
        self._open = [stage.loop == "open" for stage in stages]
        # A closed loop offers what the target completes, so it does not lie on the open loop's
        # line: it is drawn as points, unless there is nothing else.
        self._apart = sum(self._open) >= 2 and not all(self._open)

    def note(self) -> str:
        """How to read the charts."""
        apart = " Unjoined points are closed-loop stages." if self._apart else ""
        return (
            "Each point is a stage, placed at the load it offered; a hollow one is a stage whose "
            f"verdict is not VALID.{apart} Where waits climb while the completed rate no longer "
            "follows the offered one, the target is saturated."
        )

    def durations(self, title: str, measure: str, points: Sequence[str]) -> Markup:
        """Percentiles of a duration in milliseconds."""
        lines: list[Line] = []
        for tone, point in enumerate(points, 1):
            values = [_point_ms(getattr(stage, measure), point) for stage in self._stages]
            lines += self._lines(point, values, tone)
        return self._figure(title, "ms", lines)

    def amounts(self, title: str, unit: str, read: Callable[[StageReport], float | None]) -> Markup:
        """One value of each stage."""
        values = [read(stage) for stage in self._stages]
        return self._figure(title, unit, self._lines(title.lower(), values, 3))

    def completed(self) -> Markup:
        """What came back of what was offered."""
        values = [stage.rates.completed_per_s for stage in self._stages]
        ideal: list[float | None] = [_load(stage) for stage in self._stages]
        lines = [Line("as offered", ideal, 6, dashed=True), *self._lines("completed", values, 1)]
        return self._figure("Completed requests", "requests/s", lines)

    def good(self) -> Markup:
        """What met every objective of what was offered."""
        values = [stage.goodput.good_per_s if stage.goodput else None for stage in self._stages]
        if not any(stage.goodput for stage in self._stages):
            return fragment()
        ideal: list[float | None] = [_load(stage) for stage in self._stages]
        lines = [Line("as offered", ideal, 6, dashed=True), *self._lines("good", values, 2)]
        return self._figure("Goodput", "requests/s", lines)

    def _lines(self, label: str, values: Sequence[float | None], tone: int) -> list[Line]:
        marks = [stage.verdict.word == "VALID" for stage in self._stages]
        if not self._apart:
            return [Line(label, values, tone, marks=marks)]
        joined = [v if is_open else None for v, is_open in zip(values, self._open, strict=True)]
        apart = [None if is_open else v for v, is_open in zip(values, self._open, strict=True)]
        return [
            Line(label, joined, tone, marks=marks, bridged=True),
            Line(label, apart, tone, marks=marks, joined=False),
        ]

    def _figure(self, title: str, unit: str, lines: Sequence[Line]) -> Markup:
        if all(value is None for line in lines for value in line.values):
            return fragment()
        return draw_lines(
            LineChart(
                title=title,
                x=[_load(stage) for stage in self._stages],
                lines=lines,
                x_label="requests offered per second",
                y_unit=unit,
                table=_TABLE,
                may_be_log=unit == "ms",
                names=[f"{stage.name} ({stage.verdict.word})" for stage in self._stages],
            )
        )


def _point_ms(summary: DurationSummary | None, point: str) -> float | None:
    return None if summary is None else float(getattr(summary, f"{point}_s")) * 1000
