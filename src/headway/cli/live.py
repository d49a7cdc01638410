"""What `headway bench` shows while it runs: a live panel on a terminal, plain lines elsewhere.

Both write to standard error, so that standard output holds only what was asked for.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from headway.load import LiveSnapshot, Observer, StageResult
from headway.records.record import StageStarted
from headway.records.run_dir import RunDirectory, RunFile
from headway.report import stage_summary
from headway.report.terminal import VERDICT_AT_ONCE_REQUESTS, stage_findings, verdict_text

PLAIN_LINE_EVERY_S = 5.0
_REFRESH_PER_S = 8


def format_s(seconds: float | None) -> str:
    """A duration for a narrow column: `740 µs`, `12.3 ms`, `1.42 s`; a dash where there is none."""
    if seconds is None:
        return "–"
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds:.2f} s"


def format_rate(per_s: float | None) -> str:
    """A rate, in requests per second; a dash where there is none."""
    return "–" if per_s is None else f"{per_s:,.1f}/s"


def load_of(snapshot: LiveSnapshot) -> str:
    """What the stage asks for: a rate, or a number of streams."""
    if snapshot.asked_rate_per_s is not None:
        return format_rate(snapshot.asked_rate_per_s)
    if snapshot.streams is None:
        return "–"
    return f"{snapshot.streams} stream{'' if snapshot.streams == 1 else 's'}"


class StageView(Observer):
    """Says where the run is kept, how each stage ended, and whether its numbers can be trusted."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console
        self._directory: RunDirectory | None = None

    def run_started(self, run: RunFile, path: Path) -> None:
        self._directory = RunDirectory(path)
        self._print(Text.assemble(("run ", "dim"), run.run_id, (" in ", "dim"), str(path)))

    def stage_ended(self, result: StageResult) -> None:
        self._print(Text(result.sentence))
        if self._directory is None or result.offered > VERDICT_AT_ONCE_REQUESTS:
            return
        summary = stage_summary(self._directory, result.stage)
        for line in stage_findings(summary) or [verdict_text(summary.verdict.word)]:
            self._print(Text.assemble("  ", line))

    def _print(self, line: Text) -> None:
        self._console.print(line, highlight=False, soft_wrap=True)


class PlainView(StageView):
    """One line every few seconds, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._next_line_s = 0.0

    def stage_started(self, event: StageStarted) -> None:
        self._next_line_s = PLAIN_LINE_EVERY_S
        self._print(Text(f"stage {event.stage + 1}: {event.name}"))

    def progress(self, snapshot: LiveSnapshot) -> None:
        if snapshot.elapsed_s < self._next_line_s:
            return
        self._next_line_s = snapshot.elapsed_s + PLAIN_LINE_EVERY_S
        self._print(Text(progress_line(snapshot)))


class LiveView(StageView):
    """A panel that is redrawn in place; finished stages stay above it."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._live = Live(console=console, refresh_per_second=_REFRESH_PER_S, transient=True)

    def stage_started(self, event: StageStarted) -> None:
        self._live.start()

    def progress(self, snapshot: LiveSnapshot) -> None:
        self._live.update(panel(snapshot))

    def stage_ended(self, result: StageResult) -> None:
        self.close()
        super().stage_ended(result)

    def close(self) -> None:
        """Take the panel off the screen; safe to call twice."""
        self._live.update("")
        self._live.stop()


def progress_line(snapshot: LiveSnapshot) -> str:
    """The stage that runs, in one line."""
    return (
        f"  {snapshot.elapsed_s:.0f} s: asked {load_of(snapshot)}, "
        f"achieved {format_rate(snapshot.done_rate_per_s)}, in flight {snapshot.in_flight}, "
        f"TTFT p50 {format_s(snapshot.ttft_p50_s)}, latency p50 "
        f"{format_s(snapshot.latency_p50_s)}, lateness p99 {format_s(snapshot.lateness_p99_s)}"
        f", errors {snapshot.errored}"
    )


def panel(snapshot: LiveSnapshot) -> RenderableType:
    """The stage that runs: its progress and its numbers."""
    rows: list[RenderableType] = [_head(snapshot), _numbers(snapshot)]
    if snapshot.top_error:
        rows.append(Text(f"{snapshot.errored} failed; most often: {snapshot.top_error}", "red"))
    return Group(*rows)


def _head(snapshot: LiveSnapshot) -> RenderableType:
    head = Table.grid(padding=(0, 2))
    done = snapshot.fraction_done
    bar = ProgressBar(total=1.0, completed=done or 0.0, width=28, pulse=done is None)
    name = Text.assemble(
        (f"stage {snapshot.stage + 1} of {snapshot.stages} ", "bold"), (snapshot.name, "bold cyan")
    )
    head.add_row(name, bar, f"{snapshot.elapsed_s:.0f} s", f"{snapshot.in_flight} in flight")
    return head


def _numbers(snapshot: LiveSnapshot) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    for _ in range(6):
        grid.add_column(justify="right")
    for row in (
        ("asked", load_of(snapshot), "sent", format_rate(snapshot.sent_rate_per_s),
         "achieved", format_rate(snapshot.done_rate_per_s)),
        ("TTFT p50", format_s(snapshot.ttft_p50_s), "p95", format_s(snapshot.ttft_p95_s),
         "completed", f"{snapshot.completed:,}"),
        ("latency p50", format_s(snapshot.latency_p50_s), "p95", format_s(snapshot.latency_p95_s),
         "errors", f"{snapshot.errored:,}"),
        ("lateness p50", format_s(snapshot.lateness_p50_s), "p99",
         format_s(snapshot.lateness_p99_s), "cancelled", f"{snapshot.cancelled:,}"),
    ):  # fmt: skip
        grid.add_row(*(Text(cell, "dim" if i % 2 == 0 else "") for i, cell in enumerate(row)))
    return grid
