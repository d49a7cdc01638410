"""The report for a terminal: a table of the stages, then what spoils them and what failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headway.report.floor import read_floor
from headway.report.model import DurationSummary, ErrorGroup, Report, StageReport, VerdictWord
from headway.report.search import search_finding
from headway.report.verdict import leading_findings

VERDICT_AT_ONCE_REQUESTS = 50_000
"""A larger stage gets its verdict with the report: reading its records, at some 20 µs each, would
hold up the next stage for more than a second."""

_MAX_ERROR_GROUPS = 5
_MISSING = "–"
_NAME_WIDTH = 14
"""`poisson 19.2/s`: without it a narrow terminal takes all of the name's column for the numbers."""


def report_view(report: Report) -> RenderableType:
    """The whole report: table, verdicts with their evidence, errors, the client's floor."""
    parts: list[RenderableType] = [stage_table(report), Text()]
    for stage in report.counted:
        parts.extend(stage_findings(stage))
    parts.extend(_left_out(report))
    parts.extend(_floor_lines(report))
    if any(stage.with_failures.response for stage in report.stages):
        said = "(∞): with each request that did not complete counted as infinite"
        parts.append(Text(said, style="dim"))
    finding = search_finding(report)
    if finding is not None:
        parts.append(Text.assemble(("search: ", "bold"), finding.text))
    parts.append(_overall(report))
    return Group(*parts)


def stage_table(report: Report) -> RenderableType:
    """What each stage did, and how long it took: two tables that fit 80 columns.

    A percentile in grey is one that so few samples cannot bound.
    """
    return Group(_load_table(report.stages), Text(), _times_table(report.stages))


def _load_table(stages: Sequence[StageReport]) -> Table:
    table = _table("stage")
    table.add_column("verdict", no_wrap=True)
    for header in ("asked\n/s", "done\n/s", "in\nflight", "ok", "failed", "tokens\n/s"):
        table.add_column(header, justify="right", no_wrap=True)
    for stage in stages:
        counts, rates, in_flight = stage.counts, stage.rates, stage.concurrency
        table.add_row(
            _name(stage),
            verdict_text(stage.verdict.word),
            _number(rates.asked_per_s, 1),
            _number(rates.completed_per_s, 1),
            _number(in_flight.mean if in_flight else None, 1),
            Text(str(counts.completed)),
            Text(str(counts.errored), style="red" if counts.errored else ""),
            _number(rates.output_tokens_per_s, 0),
        )
    return table


def _times_table(stages: Sequence[StageReport]) -> Table:
    columns = [(header, read) for header, shown, read in _TIMES if any(map(shown, stages))]
    table = _table("milliseconds")
    for header, _ in columns:
        table.add_column(header, justify="right", no_wrap=True)
    for stage in stages:
        table.add_row(_name(stage), *[read(stage) for _, read in columns])
    return table


def _table(first: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    table.add_column(first, min_width=_NAME_WIDTH)
    return table


def _name(stage: StageReport) -> Text:
    name = Text(stage.name)
    if stage.done_again_as is not None:
        name.append(" (broken off, done again)", style="dim")
    elif stage.partial:
        name.append(" (partial)", style="yellow")
    return name


def stage_findings(stage: StageReport) -> list[Text]:
    """Sentences on what spoils a stage and on what failed in it; none when all is well."""
    lines = []
    for check in leading_findings(stage.verdict):
        line = Text(f"{stage.name}: ", style="bold")
        line.append_text(verdict_text(check.word))
        lines.append(line.append(f": {check.text}", style="not bold"))
    lines.extend(_error_line(stage, group) for group in stage.errors[:_MAX_ERROR_GROUPS])
    hidden = len(stage.errors) - _MAX_ERROR_GROUPS
    if hidden > 0:
        lines.append(Text(f"{stage.name}: {hidden} more kinds of error are in report.json"))
    return lines


def verdict_text(word: VerdictWord) -> Text:
    """A verdict's word in its colour."""
    colour = {"VALID": "green", "TOO_FEW_SAMPLES": "yellow"}.get(word, "red")
    return Text(word, style=f"bold {colour}")


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
    style = "" if name in summary.trusted else "dim"
    return Text(f"{value:.1f}" if value < 10_000 else f"{value:.0f}", style=style)


# Header, whether a stage has it, its text. Columns that no stage has are left out.
_TIMES: tuple[tuple[str, Callable[[StageReport], object], Callable[[StageReport], Text]], ...] = (
    ("TTFT\np50", lambda s: s.ttft, lambda s: _ms(s.ttft, "p50")),
    ("TTFT\np99", lambda s: s.ttft, lambda s: _ms(s.ttft, "p99")),
    ("TPOT\np50", lambda s: s.tpot, lambda s: _ms(s.tpot, "p50")),
    ("latency\np50", lambda _: True, lambda s: _ms(s.latency, "p50")),
    ("latency\np99", lambda _: True, lambda s: _ms(s.latency, "p99")),
    ("response\np99", lambda _: True, lambda s: _ms(s.response, "p99")),
    ("response\np99 (∞)", lambda s: s.with_failures.response, lambda s: _with_failures(s)),
    ("late\np99", lambda _: True, lambda s: _ms(s.lateness, "p99")),
)


def _number(value: float | None, digits: int) -> Text:
    return Text(_MISSING if value is None else f"{value:.{digits}f}")


def _error_line(stage: StageReport, group: ErrorGroup) -> Text:
    line = Text(f"{stage.name}: ", style="bold")
    line.append(f"{group.count} × {group.category}", style="red")
    line.append(f" {_one_line(group.message)}", style="not bold")
    if group.body:
        first_line = _one_line(group.body)
        if first_line and first_line not in group.message:
            line.append(f" | {first_line}", style="not bold dim")
    return line


def _one_line(body: str, limit: int = 200) -> str:
    # A reply is somebody else's text: control characters must not reach the terminal.
    text = " ".join("".join(c if c.isprintable() else " " for c in body).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _left_out(report: Report) -> list[Text]:
    """Rows of the file that were not sent: who does not read it here may never know."""
    notes = [note for note in report.notes if (note.data or {}).get("skipped")]
    return [Text.assemble(("inputs: ", "bold yellow"), _one_line(note.text)) for note in notes]


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
