"""`headway bench`: run a load test here and now, and say what came of it."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.bench_options import bench_options
from headway.cli.exit_codes import ExitCode
from headway.cli.spec_options import SectionedCommand, overlay, read_spec_file, spec_values
from headway.core.clock import SystemClock
from headway.core.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from headway.load import Observer, Run, RunResult
    from headway.load.spec import RunSpec
    from headway.report.model import Report, StageReport

_EXAMPLES = """
headway bench http://localhost:8000
headway bench http://localhost:8000 --rate 20 --max-seconds 60s --input 512±128 --output 128
headway bench http://localhost:8000 --streams 1,8,32 --data chats.jsonl --turns
headway bench http://localhost:8000 --profile trace --data mooncake.jsonl --time-scale 0.5
headway bench run.yaml --seed 7
headway bench http://localhost:8000 --profile constant --rate 200 --max-requests 6000 --json
"""


@click.command(
    cls=SectionedCommand,
    examples=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
    short_help="Load-test a target, here and now.",
)
@click.argument("source", nargs=-1, metavar="[URL] [RUN.YAML]")
@bench_options
@click.pass_context
def bench_command(ctx: click.Context, /, source: Sequence[str], **options: Any) -> int:
    """Load-test the target at URL, or what RUN.YAML describes; flags win over the file.

    With a URL alone the model is discovered and the load swept from one request at a time to
    saturation, with prompts of 256 tokens and replies of at most 128.
    """
    from headway.cli.bench_spec import build_spec

    from_file, url = _read_sources(source)
    flags = spec_values(ctx) | ({"target.url": url} if url else {})
    spec = build_spec(from_file, flags, ctx.command.params)
    run_dir = Path(options["run_dir"] or _default_run_dir())
    return run_bench(spec, run_dir, as_json=options["json_"], quiet=options["quiet"])


def run_bench(spec: RunSpec, run_dir: Path, *, as_json: bool, quiet: bool) -> ExitCode:
    """Run `spec`, write its reports, print what was asked for.

    Args:
        spec: What to do.
        run_dir: Where the run is kept; must not hold one.
        as_json: Print report.json to standard output, instead of the table.
        quiet: Neither live view nor table.

    Returns:
        How the command ends.
    """
    from headway import report
    from headway.records.run_dir import RunDirectory

    result = asyncio.run(_execute(spec, run_dir, quiet=quiet))
    directory = RunDirectory(run_dir)
    built = report.build(directory)
    report.write_reports(directory, built)
    if as_json:
        sys.stdout.write((run_dir / "report.json").read_text(encoding="utf-8"))
    elif not quiet:
        _print_report(built, run_dir)
    code = classify(result, built)
    if quiet or as_json or code is ExitCode.ALL_REQUESTS_FAILED:
        _explain(code, built)
    return code


def classify(result: RunResult, report: Report) -> ExitCode:
    """The exit code of a run that began."""
    if result.outcome in ("interrupted", "aborted"):
        return ExitCode.INTERRUPTED
    if result.outcome == "failed":
        return ExitCode.ERROR
    if all(stage.completed == 0 for stage in result.stages):
        return ExitCode.ALL_REQUESTS_FAILED
    return ExitCode.OK if report.verdict == "VALID" else ExitCode.INVALID_MEASUREMENT


async def _execute(spec: RunSpec, run_dir: Path, *, quiet: bool) -> RunResult:
    from headway.load import Run

    with _observer(quiet) as observer:
        run = Run(spec, run_dir, observer)
        with _interrupts(run):
            return await run.execute()


@contextlib.contextmanager
def _interrupts(run: Run) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) ends the load gracefully, the second at once."""
    loop = asyncio.get_running_loop()
    asked = False

    def interrupt() -> None:
        nonlocal asked
        if asked:
            run.abort()
            return
        asked = True
        click.echo("\nStopping; requests in flight may finish. Ctrl-C again ends now.", err=True)
        run.request_stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


@contextlib.contextmanager
def _observer(quiet: bool) -> Iterator[Observer]:
    from headway.load import Observer

    if quiet:
        yield Observer()
        return
    from headway.cli.live import LiveView, PlainView

    console = _console(stderr=True)
    if not console.is_terminal:
        yield PlainView(console)
        return
    view = LiveView(console)
    try:
        yield view
    finally:
        view.close()


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr)


def _print_report(report: Report, run_dir: Path) -> None:
    from headway.report.terminal import report_view

    console = _console()
    console.print(report_view(report), highlight=False)
    console.print(f"Report: {run_dir / 'report.html'}", soft_wrap=True, highlight=False)


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


def _read_sources(source: Sequence[str]) -> tuple[dict[str, Any], str | None]:
    """What the arguments say: the content of the files, later ones over earlier, and the URL."""
    content: dict[str, Any] = {}
    url: str | None = None
    for argument in source:
        if argument.endswith((".yaml", ".yml", ".json")):
            content = overlay(content, read_spec_file(Path(argument)))
        elif url is None:
            url = argument
        else:
            raise ConfigError(f"one URL at a time, not both {url} and {argument}")
    return content, url


def _default_run_dir() -> str:
    started = SystemClock().now().strftime("%Y%m%dT%H%M%SZ")
    return f"runs/{started}-{secrets.token_hex(2)}"
