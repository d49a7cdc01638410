"""`headway ab`: two targets measured in turn and compared, by one command."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.ab_rounds import Label, PlannedRun, Rounds
from headway.cli.bench_options import bench_options
from headway.cli.bench_outcome import BenchOutput
from headway.cli.compare import outcome_code, print_outcome
from headway.cli.comparison_options import comparison_options, options_from
from headway.cli.exit_codes import ExitCode
from headway.cli.spec_options import (
    SectionedCommand,
    SpecOption,
    overlay,
    read_spec_file,
    spec_values,
)
from headway.core.clock import SystemClock
from headway.core.errors import ConfigError

if TYPE_CHECKING:
    from headway.compare import CompareOptions
    from headway.load import RunSpec
    from headway.report.model import Report

DEFAULT_RUN_S = 10.0
"""How long each run lasts when nobody says: twelve of them take two minutes."""

_EXAMPLES = """
headway ab http://a:8000 http://b:8000 --rate 20
headway ab http://a:8000 http://b:8000 --streams 8 --max-seconds 30s --rounds 8
headway ab http://a:8000 http://b:8000 run.yaml --json
"""


class _AbCommand(SectionedCommand):
    """With the options of `headway bench` that make sense for several runs here and now."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [one for one in self.params if not _is_for_one_run(one)]


def _is_for_one_run(parameter: click.Parameter) -> bool:
    section = parameter.section if isinstance(parameter, SpecOption) else ""
    return section == "Server" or parameter.name in ("run_dir", "resume", "json_")


@click.command(
    cls=_AbCommand,
    examples=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.argument("source", nargs=-1, required=True, metavar="URL_A URL_B [RUN.YAML]")
@click.option(
    "--rounds", type=click.IntRange(4, 1000), default=6, cls=SpecOption, section="Comparison",
    help="Pairs of runs, an even number, so that drift cancels. Default: 6.",
)  # fmt: skip
@click.option(
    "--out", metavar="DIR", cls=SpecOption, section="Output",
    help="Where runs and comparison.json are kept. Default: runs/ab-<time>-<id>.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, cls=SpecOption, section="Output",
              help="Print comparison.json to stdout.")  # fmt: skip
@comparison_options
@bench_options
@click.pass_context
def ab_command(
    ctx: click.Context,
    /,
    source: Sequence[str],
    rounds: int,
    out: str | None,
    as_json: bool,
    confidence: str,
    min_change: str,
    metrics: Sequence[str],
    stages: Sequence[str],
    allow_different: bool,
    **bench: Any,
) -> ExitCode:
    """Measure the targets A and B in turn (A B B A ...) and compare them pair by pair.

    Both runs of a pair get the same seed. What drifts over minutes hits both alike and cancels.
    All run directories are kept.
    """
    if rounds % 2:
        raise ConfigError("--rounds must be even: A goes first in one half of them, B in the other")
    options = options_from(confidence, min_change, metrics, stages, allow_different)
    options.chosen_metrics()  # A misspelt name must not be found out after twelve runs.
    specs = _specs(ctx, source)
    directory = Path(out or _default_directory())
    done = asyncio.run(Rounds(specs, directory, _teller(rounds, bench["quiet"])).execute(rounds))
    return _conclude(done, rounds, directory, options, BenchOutput(as_json, bench["quiet"]))


def _specs(ctx: click.Context, source: Sequence[str]) -> dict[Label, RunSpec]:
    from headway.cli.bench_spec import build_spec

    files = [one for one in source if one.endswith((".yaml", ".yml", ".json"))]
    urls = [one for one in source if one not in files]
    if len(urls) != 2:
        raise ConfigError("give two URLs: A, which is the baseline, and B")
    content: dict[str, Any] = {}
    for file in files:
        content = overlay(content, read_spec_file(Path(file)))
    flags = spec_values(ctx)
    flags |= {} if _has_end(content, flags) else {"limits.max_seconds": DEFAULT_RUN_S}
    a, b = (build_spec(content, {**flags, "target.url": url}, ctx.command.params) for url in urls)
    for spec in (a, b):
        if spec.profile.kind == "sweep":
            raise ConfigError(
                "ab compares at loads that are the same for both: give --rate or --streams"
            )
    return {"a": a, "b": b}


def _has_end(content: Mapping[str, Any], flags: Mapping[str, Any]) -> bool:
    limits = content.get("limits") or {}
    names = ("max_requests", "max_seconds")
    return any(f"limits.{name}" in flags or name in limits for name in names)


def _teller(rounds: int, quiet: bool) -> Any:
    def tell(one: PlannedRun, report: Report) -> None:
        if quiet:
            return
        stage = report.stages[-1]
        parts = [f"{stage.counts.completed} requests"]
        for label, summary in (("TTFT", stage.ttft), ("latency", stage.latency)):
            if summary is not None:
                parts.append(f"{label} p50 {summary.p50_s * 1000:.1f} ms")
        text = f"round {one.number}/{rounds} {one.label.upper()}: {', '.join(parts)}"
        click.echo(f"{text}, {report.verdict}", err=True)

    return tell


def _conclude(
    done: Sequence[tuple[Path, Path]],
    rounds: int,
    directory: Path,
    options: CompareOptions,
    output: BenchOutput,
) -> ExitCode:
    from headway.compare.model import comparison_json
    from headway.compare.rounds import MIN_PAIRS, compare_rounds

    if len(done) < rounds:
        kept = f"; see {directory}" if directory.exists() else ""
        click.echo(f"Interrupted after {len(done)} whole rounds{kept}", err=True)
    if len(done) < MIN_PAIRS:
        return ExitCode.INTERRUPTED
    outcome = compare_rounds(done, options)
    (directory / "comparison.json").write_bytes(comparison_json(outcome))
    if output.as_json or not output.quiet:
        print_outcome(outcome, as_json=output.as_json)
    if not (output.as_json or output.quiet):
        click.echo(f"Comparison: {directory / 'comparison.json'}")
    return outcome_code(outcome) if len(done) == rounds else ExitCode.INTERRUPTED


def _default_directory() -> str:
    started = SystemClock().now().strftime("%Y%m%dT%H%M%SZ")
    return f"runs/ab-{started}-{secrets.token_hex(2)}"
