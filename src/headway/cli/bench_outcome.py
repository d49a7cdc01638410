"""How `headway bench` ends: what it prints and its exit code, wherever the run took place."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from rich.console import Console

    from headway.report.model import Report, StageReport
    from headway.report.search import SearchFinding


TABLE_WIDTH = 80


@dataclass(frozen=True, slots=True)
class BenchOutput:
    """What to print.

    Attributes:
        as_json: report.json to standard output, instead of the table.
        quiet: Neither live view nor table.
    """

    as_json: bool = False
    quiet: bool = False


def classify(outcome: str, completed: int, report: Report) -> ExitCode:
    """The exit code of a run that began.

    Args:
        outcome: `RunResult.outcome`.
        completed: Requests that completed in the whole run.
        report: Its report.
    """
    if outcome in ("interrupted", "aborted"):
        return ExitCode.INTERRUPTED
    if outcome == "failed":
        return ExitCode.ERROR
    if completed == 0:
        return ExitCode.ALL_REQUESTS_FAILED
    from headway.report.search import search_finding

    finding = search_finding(report)
    if finding is not None:
        return _found(finding)
    return ExitCode.OK if report.verdict == "VALID" else ExitCode.INVALID_MEASUREMENT


def _found(finding: SearchFinding) -> ExitCode:
    """A search drives its target past the limit on purpose: what counts is its answer."""
    if not finding.settled or (finding.rate_per_s is None and finding.limited_by != "missed"):
        return ExitCode.INVALID_MEASUREMENT
    return ExitCode.OK if finding.rate_per_s is not None else ExitCode.OBJECTIVE_MISSED


def show_report(report: Report, run_dir: Path, code: ExitCode, output: BenchOutput) -> None:
    """Print the report of `run_dir` as it was asked for, and why it is not a success."""
    if output.as_json:
        from headway.report.files import report_json

        sys.stdout.write(report_json(report).decode())
    elif not output.quiet:
        _print_report(report, run_dir)
    if output.quiet or output.as_json or code is ExitCode.ALL_REQUESTS_FAILED:
        _explain(code, report)


def explain_trouble(
    trouble: Sequence[str], report: Report, run_dir: Path, *, is_broken: bool
) -> None:
    """Say on standard error what a run could not do, what is left of it, and how to go on.

    Args:
        trouble: What went wrong, a sentence each.
        report: Of what is left.
        run_dir: Where it is.
        is_broken: Whether the run itself did not come to its end.
    """
    for sentence in trouble:
        click.echo(f"Error: {sentence}", err=True)
    kept = sum(stage.counts.recorded for stage in report.stages)
    click.echo(f"Records kept in {run_dir}: {kept:,}. When the cause is mended:", err=True)
    if is_broken:
        click.echo(f"  headway bench --resume {run_dir}   goes on with the run", err=True)
    click.echo(f"  headway report {run_dir}   writes the reports of what is kept", err=True)


def console_of(*, stderr: bool = False) -> Console:
    """A console for standard output, as wide as the tables at least, or for standard error.

    A narrower terminal wraps their lines; rich would cut the last columns off.
    """
    from rich.console import Console

    console = Console(stderr=stderr)
    if not stderr:
        console.width = max(console.width, TABLE_WIDTH)
    return console


def _print_report(report: Report, run_dir: Path) -> None:
    from headway.report.terminal import report_view

    console = console_of()
    console.print(report_view(report), highlight=False)
    page = run_dir / "report.html"
    if page.exists():  # The disk may be full.
        console.print(f"Report: {page}", soft_wrap=True, highlight=False)


def _explain(code: ExitCode, report: Report) -> None:
    """Say on standard error why a run that ended is not a success, in one line a cause."""
    if code is ExitCode.ALL_REQUESTS_FAILED:
        click.echo("Error: not one request completed.", err=True)
        for stage in report.stages:
            _explain_errors(stage)
    elif code is ExitCode.INVALID_MEASUREMENT:
        for stage in report.stages:
            for check in stage.verdict.checks:
                if check.failed:
                    click.echo(f"{stage.name}: {check.word}: {check.text}", err=True)


def _explain_errors(stage: StageReport) -> None:
    for group in stage.errors:
        status = f" {group.status}" if group.status is not None else ""
        click.echo(f"  {group.count} × {group.category}{status}: {group.message}", err=True)
        if group.body:
            first_lines = " ".join(group.body.split())[:300]
            click.echo(f"      {first_lines}", err=True)
