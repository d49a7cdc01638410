"""The report for a terminal: a table of the stages, then what spoils them and what failed."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headway.report.floor import read_floor
from headway.report.model import DurationSummary, ErrorGroup, Report, StageReport, VerdictWord

_MAX_ERROR_GROUPS = 5
_MISSING = "–"


def report_view(report: Report) -> RenderableType:
    """The whole report: table, verdicts with their evidence, errors, the client's floor."""
    parts: list[RenderableType] = [stage_table(report)]
    for stage in report.stages:
        parts.extend(stage_findings(stage))
    parts.extend(_floor_lines(report))
    parts.append(_overall(report))
    return Group(*parts)


def stage_table(report: Report) -> Table:
    """One row a stage. A percentile in grey is one that so few samples cannot bound."""
    stages = report.stages
    failures = any(stage.with_failures.response for stage in stages)
    streams = any(stage.ttft for stage in stages)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    table.add_column("stage")
    table.add_column("verdict", no_wrap=True)
    for header in _headers(streams, failures):
        table.add_column(header, justify="right")
    for stage in stages:
        name = Text(stage.name)
        if stage.partial:
            name.append(" (partial)", style="yellow")
        table.add_row(name, verdict_text(stage.verdict.word), *_cells(stage, streams, failures))
    return table


def stage_findings(stage: StageReport) -> list[Text]:
    """Sentences on what spoils a stage and on what failed in it; none when all is well."""
    lines = []
    for check in stage.verdict.checks:
        if check.failed:
            line = Text(f"{stage.name}: ", style="bold")
            line.append_text(verdict_text(check.word))
            lines.append(line.append(f" {check.text}", style="not bold"))
    lines.extend(_error_line(stage, group) for group in stage.errors[:_MAX_ERROR_GROUPS])
    hidden = len(stage.errors) - _MAX_ERROR_GROUPS
    if hidden > 0:
        lines.append(Text(f"{stage.name}: {hidden} more kinds of error are in report.json"))
    return lines


def verdict_text(word: VerdictWord) -> Text:
    """A verdict's word in its colour."""
    colour = {"VALID": "green", "TOO_FEW_SAMPLES": "yellow"}.get(word, "red")
    return Text(word, style=f"bold {colour}")


def _headers(streams: bool, failures: bool) -> list[str]:
    return [
        "asked/s",
        "done/s",
        "in flight",
        "ok",
        "failed",
        *(["TTFT p50 ms", "p99 ms", "TPOT p50 ms"] if streams else []),
        "latency p50 ms",
        "p99 ms",
        "response p99 ms",
        *(["with failures p99 ms"] if failures else []),
        "late p99 ms",
        *(["tokens out/s"] if streams else []),
    ]


def _cells(stage: StageReport, streams: bool, failures: bool) -> list[Text]:
    counts, rates = stage.counts, stage.rates
    failed = Text(str(counts.errored), style="red" if counts.errored else "")
    cells = [
        _number(rates.asked_per_s, 1),
        _number(rates.completed_per_s, 1),
        _number(stage.concurrency.mean if stage.concurrency else None, 1),
        Text(str(counts.completed)),
        failed,
    ]
    if streams:
        cells += [_ms(stage.ttft, "p50"), _ms(stage.ttft, "p99"), _ms(stage.tpot, "p50")]
    cells += [_ms(stage.latency, "p50"), _ms(stage.latency, "p99"), _ms(stage.response, "p99")]
    if failures:
        cells.append(_with_failures(stage))
    cells.append(_ms(stage.lateness, "p99"))
    if streams:
        cells.append(_number(rates.output_tokens_per_s, 0))
    return cells


def _with_failures(stage: StageReport) -> Text:
    points = stage.with_failures.response
    if points is None:
        return _ms(stage.response, "p99")
    if points.p99_s == "Infinity":
        return Text("∞", style="red")
    return Text(f"{points.p99_s * 1000:.1f}")


def _ms(summary: DurationSummary | None, name: str) -> Text:
    if summary is None:
        return Text(_MISSING)
    value = getattr(summary, f"{name}_s") * 1000
    trusted = name in summary.trusted
    return Text(
        f"{value:.1f}" if value < 10_000 else f"{value:.0f}", style="" if trusted else "dim"
    )


def _number(value: float | None, digits: int) -> Text:
    return Text(_MISSING if value is None else f"{value:.{digits}f}")


def _error_line(stage: StageReport, group: ErrorGroup) -> Text:
    line = Text(f"{stage.name}: ", style="bold")
    line.append(f"{group.count} × {group.category}", style="red")
    line.append(f" {group.message}", style="not bold")
    if group.body:
        first_line = _one_line(group.body)
        if first_line and first_line not in group.message:
            line.append(f" | {first_line}", style="not bold dim")
    return line


def _one_line(body: str, limit: int = 200) -> str:
    # A reply is somebody else's text: control characters must not reach the terminal.
    text = " ".join("".join(c if c.isprintable() else " " for c in body).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _floor_lines(report: Report) -> list[Text]:
    floor = read_floor(report.calibration)
    if floor is None or floor.latency_p50_s is None:
        return []
    parts = [f"latency p50 {floor.latency_p50_s * 1000:.2f} ms"]
    if floor.ttft_p50_s is not None:
        parts.insert(0, f"TTFT p50 {floor.ttft_p50_s * 1000:.2f} ms")
    if floor.max_requests_per_s is not None:
        parts.append(f"at most {floor.max_requests_per_s:.0f} requests/s")
    return [Text("client's own floor (null server): " + ", ".join(parts), style="dim")]


def _overall(report: Report) -> Text:
    line = Text("verdict: ", style="bold")
    line.append_text(verdict_text(report.verdict))
    if not report.complete:
        line.append("  (the run is not complete)", style="yellow")
    return line
