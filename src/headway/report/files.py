"""The published files of a report."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, get_args

import msgspec

from headway.records.run_dir import RunDirectory
from headway.report.csv_rows import report_csv
from headway.report.model import Report

Format = Literal["json", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)


def report_json(report: Report) -> bytes:
    """The report as indented JSON; the same report gives the same bytes."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def render(report: Report, format_: Format) -> bytes:
    """The report in one of its formats."""
    if format_ == "json":
        return report_json(report)
    return report_csv(report).encode()


def write_reports(
    directory: RunDirectory, report: Report, formats: Iterable[Format] = FORMATS
) -> list[Path]:
    """Write `report.json` and `report.csv` into the run directory.

    Returns:
        The files that were written.

    Raises:
        DiskError: one could not be written; its former content stays.
    """
    return [
        directory.write_file(f"report.{format_}", render(report, format_)) for format_ in formats
    ]
