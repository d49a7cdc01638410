"""`headway gate`: pass or fail, with a reason and an exit code of its own for each way to fail."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click
from click.core import ParameterSource

from headway.cli.bench_outcome import console_of
from headway.cli.comparison_options import comparison_options, options_from
from headway.cli.exit_codes import ExitCode
from headway.cli.percentages import parse_share
from headway.cli.spec_options import SectionedCommand, SpecOption
from headway.core.errors import ConfigError, DiskError

if TYPE_CHECKING:
    from headway.gate.model import GateReport
    from headway.report.model import VerdictWord

_CODES = {
    "passed": ExitCode.OK,
    "invalid measurement": ExitCode.INVALID_MEASUREMENT,
    "objective missed": ExitCode.OBJECTIVE_MISSED,
    "regression": ExitCode.REGRESSION,
    "cannot tell": ExitCode.CANNOT_TELL,
    "not comparable": ExitCode.NOT_COMPARABLE,
}
_FOR_BASELINE = frozenset(
    ("max_regression", "strict", "confidence", "min_change", "metrics", "allow_different")
)
_EXAMPLES = """
headway gate runs/now --slo 'ttft p99 < 500ms; error rate < 1%'
headway gate runs/now --baseline runs/main --max-regression 5%
headway gate runs/now --slo 'goodput > 20/s' --junit gate.xml --markdown gate.md
"""


@click.command(
    cls=SectionedCommand,
    examples=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--slo", multiple=True, metavar="LIST", cls=SpecOption, section="Gate",
    help="Objectives, separated by ';': 'ttft p99 < 500ms; goodput > 20/s; error rate < 1%'.",
)  # fmt: skip
@click.option(
    "--baseline", type=click.Path(path_type=Path), cls=SpecOption, section="Gate",
    help="Run directory to hold RUN against.",
)  # fmt: skip
@click.option(
    "--max-regression", default="5%", metavar="PERCENT", cls=SpecOption, section="Gate",
    help="Largest change for the worse; fails only where the interval shows more. Default: 5%.",
)  # fmt: skip
@click.option(
    "--strict", is_flag=True, cls=SpecOption, section="Gate",
    help="Fail also where a regression can be neither shown nor ruled out.",
)  # fmt: skip
@click.option(
    "--accept", multiple=True, metavar="WORD", cls=SpecOption, section="Gate",
    help="A verdict word that does not make the measurement invalid; may be repeated.",
)  # fmt: skip
@comparison_options
@click.option(
    "--junit", type=click.Path(path_type=Path), cls=SpecOption, section="Output",
    help="Write JUnit XML to this file.",
)  # fmt: skip
@click.option(
    "--markdown", "markdown_file", type=click.Path(path_type=Path), cls=SpecOption,
    section="Output", help="Append a summary to this file, e.g. $GITHUB_STEP_SUMMARY.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, cls=SpecOption, section="Output",
              help="Print the answer as JSON.")  # fmt: skip
@click.pass_context
def gate_command(
    ctx: click.Context,
    /,
    run: Path,
    slo: Sequence[str],
    baseline: Path | None,
    max_regression: str,
    strict: bool,
    accept: Sequence[str],
    confidence: str,
    min_change: str,
    metrics: Sequence[str],
    stages: Sequence[str],
    allow_different: bool,
    junit: Path | None,
    markdown_file: Path | None,
    as_json: bool,
) -> ExitCode:
    """Judge RUN by objectives, and against a baseline.

    Exit codes: 0 passed, 5 invalid measurement, 6 objective missed, 7 regression, 8 cannot tell
    (with --strict), 9 not comparable with the baseline.
    """
    from headway.gate.gate import GateRules, gate
    from headway.report.conditions import parse_conditions

    objectives = [one for text in slo for one in parse_conditions(text)]
    if not objectives and baseline is None:
        raise ConfigError("a gate needs --slo, --baseline, or both")
    if baseline is None:
        _check_no_comparison(ctx)
    rules = GateRules(
        objectives=objectives,
        max_regression=parse_share("--max-regression", max_regression, zero=True),
        accepted=_verdict_words(accept),
        is_strict=strict,
        compare=options_from(confidence, min_change, metrics, stages, allow_different),
    )
    report = gate(run, baseline, rules)
    _write(report, junit, markdown_file)
    _print(report, as_json=as_json)
    return _CODES[report.result]


def _check_no_comparison(ctx: click.Context) -> None:
    """Refuse what only a baseline gives a meaning: a forgotten one must not pass unseen.

    Raises:
        ConfigError: naming the options.
    """
    given = [
        max(option.opts, key=len)
        for option in ctx.command.params
        if option.name in _FOR_BASELINE
        and ctx.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise ConfigError(f"{', '.join(given)} says how to compare with a --baseline; give one")


def _verdict_words(accept: Sequence[str]) -> frozenset[VerdictWord]:
    from headway.report.model import VerdictWord

    known = {str(word): word for word in get_args(VerdictWord)}
    unknown = set(accept) - known.keys()
    if unknown:
        raise ConfigError(
            f"--accept: {', '.join(sorted(unknown))} is no verdict; there are {', '.join(known)}"
        )
    return frozenset(known[word] for word in accept)


def _write(report: GateReport, junit: Path | None, markdown_file: Path | None) -> None:
    from headway.gate.junit import junit_xml
    from headway.gate.markdown import markdown

    try:
        if junit is not None:
            junit.write_bytes(junit_xml(report))
        if markdown_file is not None:
            with markdown_file.open("a", encoding="utf-8") as file:
                file.write(markdown(report))
    except OSError as error:
        raise DiskError(f"cannot write {error.filename}: {error.strerror}") from error


def _print(report: GateReport, *, as_json: bool) -> None:
    if as_json:
        import msgspec

        content = msgspec.json.format(msgspec.json.encode(report), indent=2)
        sys.stdout.buffer.write(content + b"\n")
        sys.stdout.buffer.flush()
        return
    from headway.gate.terminal import gate_view

    console_of().print(gate_view(report), highlight=False)
