"""Charts as inline SVG: they need no script, print well and take their colours from the page.

A chart is a figure with its title, a legend, the picture, and, for those who cannot see it, a
sentence that says what it shows and where the same numbers stand as a table.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from headway.report.html.markup import Markup, fragment, tag
from headway.report.html.numbers import plain
from headway.report.html.scale import Scale, fitting_scale

WIDTH, HEIGHT = 420, 232
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 10, 36
MARGIN = 0.03
"""Of the width, between the ends of the x axis and the points at its ends."""
MAX_HITS = 90

Values = Sequence[float | None]


@dataclass(frozen=True)
class Line:
    """One line of a chart; None breaks it."""

    label: str
    values: Values
    tone: int
    """Which of the page's series colours, 1 to 6."""
    dashed: bool = False
    joined: bool = True
    """Whether the values are joined by a line; else only their points are drawn."""
    bridged: bool = False
    """The line runs on over a None; else it breaks there."""
    marks: Sequence[bool] | None = None
    """Draw a point at each value: filled where True, hollow where False."""


@dataclass(frozen=True)
class LineChart:
    """Lines over a common x."""

    title: str
    x: Sequence[float]
    lines: Sequence[Line]
    x_label: str
    y_unit: str
    table: str
    """Where the numbers stand as text."""
    shaded: Sequence[tuple[float, float]] = ()
    """Stretches of x that were not measured."""
    may_be_log: bool = False
    step: bool = False
    names: Sequence[str] = field(default=())
    """A name for each x, for the tooltip; else x itself."""


def draw_lines(chart: LineChart) -> Markup:
    """The figure of a line chart."""
    known = [value for line in chart.lines for value in line.values if value is not None]
    y = fitting_scale(known, HEIGHT - BOTTOM, TOP, may_be_log=chart.may_be_log)
    x = _x_scale(chart)
    picture = _svg(
        chart.title,
        f"{chart.title} in {chart.y_unit}, by {chart.x_label}. {chart.table}",
        [
            [_shade(x, *stretch) for stretch in chart.shaded],
            _axes(x, y, chart.x_label),
            [_path(line, chart, x, y) for line in chart.lines if line.joined],
            [_points(line, chart.x, x, y) for line in chart.lines if line.marks],
            _hits(chart, x),
        ],
    )
    return _figure(chart.title, chart.y_unit, _legend(chart.lines), picture)


def _x_scale(chart: LineChart) -> Scale:
    low, high = (min(chart.x), max(chart.x)) if chart.x else (0.0, 1.0)
    high = high if high > low else low + 1.0
    # A point on the axis itself would hide the axis's numbers, and be hidden by its line.
    margin = (high - low) * MARGIN if any(line.marks for line in chart.lines) else 0.0
    return Scale(low - margin, high + margin, LEFT, WIDTH - RIGHT)


@dataclass(frozen=True)
class BarChart:
    """A histogram with marked places on its x axis."""

    title: str
    edges: Sequence[float]
    counts: Sequence[int]
    x_label: str
    markers: Sequence[tuple[str, float]]
    table: str
    tone: int = 1


def draw_bars(chart: BarChart) -> Markup:
    """The figure of a histogram."""
    y = fitting_scale([float(count) for count in chart.counts], HEIGHT - BOTTOM, TOP + 14)
    low, high = chart.edges[0], chart.edges[-1]
    if high <= low:
        low, high = low * 0.9, low * 1.1 or 1.0
    x = Scale(low, high, LEFT, WIDTH - RIGHT)
    picture = _svg(
        chart.title,
        f"{chart.title}: requests by {chart.x_label}. {chart.table}",
        [_axes(x, y, chart.x_label), _bars(chart, x, y), _markers(chart, x)],
    )
    return _figure(chart.title, "requests", None, picture)


def _figure(title: str, unit: str, legend: Markup | None, picture: Markup) -> Markup:
    caption = tag("figcaption", tag("strong", title), tag("span", unit, class_="unit"), legend)
    return tag("figure", caption, picture, class_="chart")


def _legend(lines: Sequence[Line]) -> Markup | None:
    if sum(line.joined for line in lines) < 2:
        return None
    keys = [
        tag(
            "span",
            tag("i", class_=f"swatch t{line.tone}{' dashed' if line.dashed else ''}"),
            line.label,
        )
        for line in lines
        if line.joined
    ]
    return tag("span", keys, class_="legend")


def _svg(title: str, description: str, content: Sequence[object]) -> Markup:
    return tag(
        "svg",
        tag("title", title),
        tag("desc", description),
        content,  # type: ignore[arg-type] # nested lists of Markup
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=description,
        class_="plot",
    )


def _axes(x: Scale, y: Scale, x_label: str) -> Markup:
    rows = [
        fragment(
            tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y.place(t), y2=y.place(t), class_="grid"),
            tag("text", _tick(t), x=LEFT - 6, y=y.place(t) + 3.5, class_="tick end"),
        )
        for t in y.ticks()
    ]
    columns = [
        tag("text", _tick(t), x=x.place(t), y=HEIGHT - BOTTOM + 15, class_="tick middle")
        for t in x.ticks(6)
    ]
    base = HEIGHT - BOTTOM
    axis = tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=base, y2=base, class_="axis")
    label = tag("text", x_label, x=(LEFT + WIDTH - RIGHT) / 2, y=HEIGHT - 4, class_="label middle")
    return fragment(rows, columns, axis, label)


def _tick(value: float) -> str:
    return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:.3g}"


def _shade(x: Scale, start: float, end: float) -> Markup | None:
    if end <= start:
        return None
    left, right = x.place(start), x.place(end)
    return tag(
        "rect", x=left, width=right - left, y=TOP, height=HEIGHT - BOTTOM - TOP, class_="shade"
    )


def _path(line: Line, chart: LineChart, x: Scale, y: Scale) -> Markup:
    commands, pen_down = [], False
    before = 0.0
    for at, value in zip(chart.x, line.values, strict=True):
        if value is None:
            pen_down = pen_down and line.bridged
            continue
        place, level = x.place(at), y.place(value)
        if pen_down and chart.step:
            commands.append(f"L{place:.1f} {before:.1f}")
        commands.append(f"{'L' if pen_down else 'M'}{place:.1f} {level:.1f}")
        pen_down, before = True, level
    return tag(
        "path", d="".join(commands), class_=f"line t{line.tone}{' dashed' if line.dashed else ''}"
    )


def _points(line: Line, xs: Sequence[float], x: Scale, y: Scale) -> Markup:
    circles = [
        tag(
            "circle",
            cx=x.place(at),
            cy=y.place(value),
            r=3.5,
            class_=f"point t{line.tone}{'' if sound else ' hollow'}",
        )
        for at, value, sound in zip(xs, line.values, line.marks or (), strict=True)
        if value is not None
    ]
    return fragment(circles)


def _hits(chart: LineChart, x: Scale) -> Markup:
    """Invisible columns that carry the tooltips; a finger cannot tell more than 90 apart."""
    if len(chart.x) < 2:
        return fragment()
    order = sorted(range(len(chart.x)), key=lambda i: chart.x[i])
    shown = order[:: -(-len(order) // MAX_HITS)]
    places = [x.place(chart.x[i]) for i in shown]
    middles = [(a + b) / 2 for a, b in itertools.pairwise(places)]
    edges = [LEFT, *middles, WIDTH - RIGHT]
    columns = [
        tag(
            "rect",
            x=edges[n],
            width=max(0.0, edges[n + 1] - edges[n]),
            y=TOP,
            height=HEIGHT - BOTTOM - TOP,
            class_="hit",
            data_x=places[n],
            data_tip=_tip(chart, i),
        )
        for n, i in enumerate(shown)
    ]
    return fragment(columns)


def _tip(chart: LineChart, i: int) -> str:
    name = chart.names[i] if chart.names else f"{_tick(chart.x[i])} {chart.x_label}"
    values = [
        f"{line.label}: {plain(line.values[i])}"
        for line in chart.lines
        if line.values[i] is not None
    ]
    return "\n".join([name, *values])


def _bars(chart: BarChart, x: Scale, y: Scale) -> Markup:
    base = HEIGHT - BOTTOM
    bars = []
    for i, count in enumerate(chart.counts):
        if not count:
            continue
        left, right = chart.edges[i], chart.edges[i + 1]
        start, end = (x.place(left), x.place(right)) if right > left else (LEFT + 160, LEFT + 200)
        tip = f"{plain(left)} to {plain(right)} {chart.x_label}\nrequests: {count:,}"
        # Half a pixel at least: one request among a million must still be seen.
        top = min(y.place(count), base - 0.5)
        bars.append(
            tag(
                "rect",
                x=start,
                width=max(1.0, end - start - 0.6),
                y=top,
                height=base - top,
                class_=f"bar t{chart.tone}",
                data_tip=tip,
                data_x=(start + end) / 2,
            )
        )
    return fragment(bars)


def _markers(chart: BarChart, x: Scale) -> Markup:
    marks, last = [], -100.0
    for name, value in chart.markers:
        place = x.place(value)
        near_end = place > WIDTH - RIGHT - 34
        marks.append(
            tag("line", x1=place, x2=place, y1=TOP + 10, y2=HEIGHT - BOTTOM, class_="marker")
        )
        # The word stands right of its line, at the end of the chart left of it.
        begins = place - 24 if near_end else place
        if begins - last > 26:
            marks.append(
                tag(
                    "text",
                    name,
                    x=place - 3 if near_end else place + 3,
                    y=TOP + 12,
                    class_=f"tick{' end' if near_end else ''}",
                )
            )
            last = place
    return fragment(marks)
