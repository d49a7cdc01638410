"""A comparison for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headway.compare.model import (
    Comparison,
    MetricComparison,
    Refusal,
    Side,
    StageComparison,
    Unlike,
)

_MISSING = "–"
_COLOURS = {"better": "green", "worse": "red", "mixed": "yellow"}
LABELS = {
    "ttft": "TTFT",
    "tpot": "TPOT",
    "latency": "latency",
    "response": "response",
    "completed_per_s": "requests/s",
    "output_tokens_per_s": "tokens/s",
    "error_share": "errors",
    "good_share": "goodput",
}


def comparison_view(comparison: Comparison) -> RenderableType:
    """The whole comparison: who is who, what differs besides, a table for each stage, one word."""
    parts: list[RenderableType] = [*_sides(comparison.a, comparison.b)]
    parts.extend(_allowed(comparison.unlike))
    for stage in comparison.stages:
        parts += [Text(), *_stage(stage, comparison.confidence)]
    parts.append(Text())
    parts.extend(Text(f"note: {caution}", style="dim") for caution in comparison.cautions)
    parts.append(_overall(comparison))
    return Group(*parts)


def refusal_view(refusal: Refusal) -> RenderableType:
    """Why the two cannot be compared, and what to do."""
    parts = [*_sides(refusal.a, refusal.b), Text("not comparable:", style="bold red")]
    parts += [Text(f"  {one.what}: {one.text}") for one in refusal.unlike]
    return Group(*parts)


def metric_label(name: str) -> str:
    """A metric's name as people say it: `ttft_p99_s` is `TTFT p99`."""
    if name in LABELS:
        return LABELS[name]
    measure, point, _ = name.split("_")
    return f"{LABELS[measure]} {point}"


def metric_value(name: str, value: float | None) -> str:
    """A value with its unit: durations in ms, shares in percent."""
    if value is None:
        return _MISSING
    if name.endswith("_per_s"):
        return f"{value:.1f}/s" if value < 1000 else f"{value:.0f}/s"
    if name.endswith("_share"):
        return f"{value:.2%}"
    return f"{value * 1000:.2f} ms" if value < 1 else f"{value:.2f} s"


def change_text(metric: MetricComparison, value: float | None) -> str:
    """A change in percent of A; of shares in percentage points."""
    if value is None:
        return _MISSING
    if abs(value) >= 10 and metric.scale == "relative":
        return f"×{1 + value:.3g}"
    return f"{value * 100:+.1f}" + ("%" if metric.scale == "relative" else " pp")


def interval_text(metric: MetricComparison) -> str:
    """The interval of the change, or nothing where there is none."""
    if metric.low is None or metric.high is None:
        return ""
    return f"{change_text(metric, metric.low)} … {change_text(metric, metric.high)}"


def word_text(word: str) -> Text:
    """A word in its colour."""
    colour = _COLOURS.get(word)
    return Text(word, style=f"bold {colour}" if colour else "dim")


def _sides(a: Side, b: Side) -> Iterator[Text]:
    for name, side in (("A", a), ("B", b)):
        line = Text(f"{name}: ", style="bold").append(side.path, style="not bold")
        details = [side.target_url, side.model, side.verdict]
        if side.imported_from:
            details.append(f"imported from {side.imported_from}")
        known = ", ".join(detail for detail in details if detail)
        yield line.append(f"  ({known})", style="not bold dim")


def _allowed(unlike: list[Unlike]) -> Iterator[Text]:
    if unlike:
        yield Text("compared although more than the target differs:", style="bold yellow")
    for one in unlike:
        yield Text(f"  {one.what}: {one.text}", style="yellow")


def _stage(stage: StageComparison, confidence: float) -> Iterator[RenderableType]:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    table.add_column(stage.name)
    for header in ("A", "B", "change", f"{confidence:.0%} interval"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("word", no_wrap=True)
    shown = [m for m in stage.metrics if m.a is not None or m.b is not None]
    for metric in shown:
        table.add_row(
            metric_label(metric.name),
            metric_value(metric.name, metric.a),
            metric_value(metric.name, metric.b),
            change_text(metric, metric.change),
            interval_text(metric),
            word_text(metric.word),
        )
    yield table
    yield from (Text(f"caution: {caution}", style="yellow") for caution in stage.cautions)
    yield from _reasons(shown)


def _reasons(metrics: list[MetricComparison]) -> Iterator[Text]:
    """Why numbers have no word, those with the same reason together."""
    by_reason: dict[str, list[str]] = {}
    for metric in metrics:
        if metric.word == "cannot tell":
            by_reason.setdefault(metric.reason, []).append(metric_label(metric.name))
    for reason, names in by_reason.items():
        yield Text(f"cannot tell: {', '.join(names)}: {reason}", style="dim")


def _overall(comparison: Comparison) -> Text:
    line = Text("B against A: ", style="bold")
    line.append_text(word_text(comparison.word))
    counted = f"{comparison.comparisons} numbers"
    if comparison.method == "paired rounds":
        pairs = max((m.pairs or 0 for s in comparison.stages for m in s.metrics), default=0)
        counted += f" over {pairs} pairs of runs"
    return line.append(f"  ({counted}; words hold for all together)", style="dim")
