"""`headway export`: a run in the formats that others read."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.spec_options import SectionedCommand
from headway.core.errors import ConfigError, DiskError

if TYPE_CHECKING:
    from headway.records.run_dir import RunDirectory


_EXAMPLES = """
headway export runs/a --format csv > requests.csv
headway export runs/a --format parquet
headway export runs/a --format llmd --output reports/
"""


@click.command(
    cls=SectionedCommand,
    examples=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "format_",
    type=click.Choice(["csv", "parquet", "llmd"]),
    required=True,
    help="csv, parquet: one row a request. llmd: one llm-d benchmark report a stage.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    help="File (llmd: directory) to write. Default: standard output; parquet: in RUN.",
)
def export_command(run: Path, format_: str, output: Path | None) -> None:
    """Write the run in directory RUN in another format."""
    from headway.records.run_dir import RunDirectory

    directory = RunDirectory(run)
    directory.read_run()  # What is no run directory is said before a file is made.
    try:
        {"csv": _csv, "parquet": _parquet, "llmd": _llmd}[format_](directory, output)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DiskError(f"cannot write {error.filename}: {error.strerror}") from error


def _csv(directory: RunDirectory, output: Path | None) -> None:
    from headway.interchange.requests_csv import write_requests_csv

    if output is None:
        write_requests_csv(directory, sys.stdout)
        return
    with output.open("w", encoding="utf-8", newline="") as file:
        count = write_requests_csv(directory, file)
    click.echo(f"wrote {output} ({count} requests)", err=True)


def _parquet(directory: RunDirectory, output: Path | None) -> None:
    from headway.report.parquet import write_parquet

    written = write_parquet(directory)
    if output is not None:
        written = written.replace(output)
    click.echo(f"wrote {written}", err=True)


def _llmd(directory: RunDirectory, output: Path | None) -> None:
    from headway.interchange.llmd import llmd_reports
    from headway.report import build

    reports = llmd_reports(build(directory))
    if output is None:
        if len(reports) != 1:
            raise ConfigError(
                f"the run has {len(reports)} stages, each a report of its own: name a directory "
                "with --output"
            )
        sys.stdout.write(json.dumps(reports[0], indent=2) + "\n")
        return
    output.mkdir(parents=True, exist_ok=True)
    for number, report in enumerate(reports):
        file = output / f"benchmark_report_stage_{number}.json"
        file.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        click.echo(f"wrote {file}", err=True)
