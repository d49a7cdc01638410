"""`headway report`: makes a run's reports again from what it recorded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.bench_outcome import console_of
from headway.cli.spec_options import SectionedCommand

if TYPE_CHECKING:
    from headway.report import Report


_EXAMPLES = """
headway report runs/a
headway report runs/a --format html
headway report runs/a --json | jq .verdict
"""


@click.command(
    cls=SectionedCommand,
    examples=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "formats",
    type=click.Choice(["json", "csv", "html"]),
    multiple=True,
    help="Write only this file; may be given several times. Default: all three.",
)
@click.option("--json", "as_json", is_flag=True, help="Print report.json to stdout, write nothing.")
@click.option(
    "--parquet", is_flag=True, help="Also write records.parquet (needs the extra: parquet)."
)
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")
def report_command(
    directory: Path, formats: tuple[str, ...], as_json: bool, parquet: bool, quiet: bool
) -> None:
    """Rebuild the reports of the run in DIRECTORY from its records.

    Works for any run, also for one that was interrupted or killed: what had been recorded by then
    is reported, and a stage that was never ended is marked as partial.
    """
    from headway import report
    from headway.records.run_dir import RunDirectory
    from headway.report.files import FORMATS, report_json

    run = RunDirectory(directory)
    built = report.build(run)
    if as_json:
        sys.stdout.buffer.write(report_json(built))
        return
    chosen = [format_ for format_ in FORMATS if not formats or format_ in formats]
    written = report.write_reports(run, built, chosen)
    if parquet:
        from headway.report.parquet import write_parquet

        written.append(write_parquet(run))
    if not quiet:
        _print(built, written)


def _print(built: Report, written: list[Path]) -> None:
    from headway.report.terminal import report_view

    console = console_of()
    console.print(report_view(built), highlight=False)
    for file in written:
        console.print(f"wrote {file}", soft_wrap=True, highlight=False)
