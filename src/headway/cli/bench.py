"""`headway bench`: run a load test here and now, and say what came of it."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.bench_options import bench_options
from headway.cli.bench_outcome import (
    BenchOutput,
    classify,
    console_of,
    explain_trouble,
    show_report,
)
from headway.cli.durations import parse_duration_s
from headway.cli.exit_codes import ExitCode
from headway.cli.interrupts import deferred_interrupt, interrupts
from headway.cli.spec_options import SectionedCommand, overlay, read_spec_file, spec_values
from headway.core.clock import SystemClock
from headway.core.errors import ConfigError, DiskError

if TYPE_CHECKING:
    from headway.load import Observer, RunResult
    from headway.load.early import EarlyProcesses
    from headway.load.spec import RunSpec

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

    With --server the run is a job of that server: it waits for its turn at the target, survives
    this terminal, and leaves the same run directory here.

    With a URL alone the model is discovered and the load swept from one request at a time to
    saturation, with prompts of 256 tokens and replies of at most 128.
    """
    output = BenchOutput(as_json=options["json_"], quiet=options["quiet"])
    run_dir = Path(options["run_dir"] or options["resume"] or _default_run_dir())
    server = None if options["local"] else options["server"]
    if options["attach"]:
        from headway.cli.bench_remote import attach

        return attach(server, options["attach"], run_dir, output)
    if server is None or options["resume"]:
        with _early_processes(options) as early:
            spec = _read_spec(ctx, source, run_dir if options["resume"] else None)
            return run_bench(spec, run_dir, output, resume=bool(options["resume"]), early=early)
    from headway.cli.bench_remote import Wishes, submit

    spec = _read_spec(ctx, source, None)
    wishes = Wishes(_optional_s(options["target_wait"]), detach=options["detach"])
    return submit(server, spec, wishes, run_dir, output)


def _early_processes(options: Mapping[str, Any]) -> EarlyProcesses:
    """What a run will need, begun while this process loads the rest of itself: asyncio too, which
    is why nothing here imports it any earlier.
    """
    from headway.load.early import EarlyProcesses

    speaks = options["backend"] is None or options["backend"].startswith("openai")
    wants_floor = options["calibrate"] is not False and not options["resume"]
    return EarlyProcesses(null_server=speaks and wants_floor)


def _read_spec(ctx: click.Context, source: Sequence[str], resumed: Path | None) -> RunSpec:
    """What is asked: the flags over the files, over the run that is resumed."""
    # Ctrl-C within pydantic's making of a validator comes out of it as an error of the schema.
    with deferred_interrupt():
        from headway.cli.bench_spec import build_spec

        from_file, url = _read_sources(source)
        if resumed is not None:
            from_file = overlay(_spec_of_run(resumed), from_file)
        flags = spec_values(ctx) | ({"target.url": url} if url else {})
        spec = build_spec(from_file, flags, ctx.command.params)
        if resumed is not None:
            _check_secrets(spec)
    return spec


def run_bench(
    spec: RunSpec,
    run_dir: Path,
    output: BenchOutput,
    *,
    resume: bool = False,
    early: EarlyProcesses | None = None,
) -> ExitCode:
    """Run `spec`, write its reports, print what was asked for.

    Args:
        spec: What to do.
        run_dir: Where the run is kept; must not hold one, unless it is resumed.
        output: What to print.
        resume: Go on with the run that `run_dir` holds.
        early: Processes for it that run already.

    Returns:
        How the command ends.
    """
    with deferred_interrupt():
        import asyncio

    result = asyncio.run(_execute(spec, run_dir, resume=resume, quiet=output.quiet, early=early))
    if not (run_dir / "run.json").exists():
        return _explain_nothing(result)
    # Here, not above: reports take a tenth of a second to load, and nothing is sent meanwhile.
    from headway import report
    from headway.records.run_dir import RunDirectory

    directory = RunDirectory(run_dir)
    built = report.build(directory)
    is_broken = result.outcome == "failed"
    trouble = [f"the run could not go on: {result.detail}"] if is_broken else []
    try:
        report.write_reports(directory, built)
    except DiskError as error:
        trouble.append(str(error))
    completed = sum(stage.completed for stage in result.stages)
    code = ExitCode.ERROR if trouble else classify(result.outcome, completed, built)
    show_report(built, run_dir, code, output)
    if trouble:
        # Last, where it is read: the table above looks like any other.
        explain_trouble(trouble, built, run_dir, is_broken=is_broken)
    return code


def _explain_nothing(result: RunResult) -> ExitCode:
    """Say why a run left nothing behind."""
    if result.outcome == "failed":
        click.echo(f"Error: the run could not begin: {result.detail}", err=True)
        return ExitCode.ERROR
    click.echo("Interrupted before the first stage: nothing was measured.", err=True)
    return ExitCode.INTERRUPTED


async def _execute(
    spec: RunSpec, run_dir: Path, *, resume: bool, quiet: bool, early: EarlyProcesses | None
) -> RunResult:
    from headway.load import Run

    with _observer(quiet) as observer:
        run = Run(spec, run_dir, observer, resume=resume, early=early)
        with interrupts(run.request_stop, run.abort):
            return await run.execute()


@contextlib.contextmanager
def _observer(quiet: bool) -> Iterator[Observer]:
    from headway.load import Observer

    if quiet:
        yield Observer()
        return
    from headway.cli.live import LiveView, PlainView

    console = console_of(stderr=True)
    if not console.is_terminal:
        yield PlainView(console)
        return
    view = LiveView(console)
    try:
        yield view
    finally:
        view.close()


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


def _spec_of_run(run_dir: Path) -> dict[str, Any]:
    """What a run directory says was asked, to be asked again.

    Raises:
        ConfigError: it is not a run directory.
    """
    from headway.records.run_dir import RunDirectory

    return RunDirectory(run_dir).read_run().spec


def _check_secrets(spec: RunSpec) -> None:
    """Refuse to send what stands in `run.json` in the place of a secret.

    Raises:
        ConfigError: naming the headers.
    """
    from headway.load.provenance import HIDDEN

    given = {**getattr(spec.backend, "headers", {}), **spec.target.headers}
    headers = [name for name, value in given.items() if value == HIDDEN]
    if headers:
        raise ConfigError(
            f"a run directory keeps no secrets: give {', '.join(headers)} again with --header"
        )


def _optional_s(text: str | None) -> float | None:
    return None if text is None else parse_duration_s(text)


def _default_run_dir() -> str:
    started = SystemClock().now().strftime("%Y%m%dT%H%M%SZ")
    return f"runs/{started}-{secrets.token_hex(2)}"
