"""`headway compare`: whether one run differs from another, by how much, and how surely."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.bench_outcome import console_of
from headway.cli.comparison_options import comparison_options, options_from
from headway.cli.exit_codes import ExitCode
from headway.cli.spec_options import SectionedCommand

if TYPE_CHECKING:
    from headway.compare import Comparison, Refusal

_EXAMPLES = """
headway compare runs/before runs/after
headway compare runs/before runs/after --metric ttft --metric tpot --json
headway compare runs/before guidellm.json --allow-different
"""


@click.command(
    cls=SectionedCommand,
    examples=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.argument("run_a", type=click.Path(path_type=Path))
@click.argument("run_b", type=click.Path(path_type=Path))
@comparison_options
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
def compare_command(
    run_a: Path,
    run_b: Path,
    confidence: str,
    min_change: str,
    metrics: Sequence[str],
    stages: Sequence[str],
    allow_different: bool,
    as_json: bool,
) -> ExitCode:
    """Compare RUN_B with RUN_A, the baseline: run directories, or results of GuideLLM or vLLM.

    Each number gets its change, an interval, and a word: better, worse, or cannot tell. Runs that
    differ in more than the target are refused, with the reason.
    """
    from headway.compare import compare_paths

    options = options_from(confidence, min_change, metrics, stages, allow_different)
    outcome = compare_paths(run_a, run_b, options)
    print_outcome(outcome, as_json=as_json)
    return outcome_code(outcome)


def print_outcome(outcome: Comparison | Refusal, *, as_json: bool) -> None:
    """Print a comparison, or why there is none; as JSON to standard output either way."""
    from headway.compare.model import Refusal, comparison_json

    if as_json:
        sys.stdout.buffer.write(comparison_json(outcome))
        sys.stdout.buffer.flush()
        return
    from headway.compare.terminal import comparison_view, refusal_view

    is_refused = isinstance(outcome, Refusal)
    console = console_of(stderr=is_refused)
    console.print(
        refusal_view(outcome) if isinstance(outcome, Refusal) else comparison_view(outcome)
    )
    if is_refused:
        click.echo("Make the runs alike, or compare anyway with --allow-different.", err=True)


def outcome_code(outcome: Comparison | Refusal) -> ExitCode:
    """The exit code: whatever a comparison says, it was made."""
    from headway.compare.model import Refusal

    return ExitCode.NOT_COMPARABLE if isinstance(outcome, Refusal) else ExitCode.OK
