"""The published files of a report."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, get_args

import msgspec

from headway.records.run_dir import RunDirectory
from headway.report.csv_rows import report_csv
from headway.report.model import Report

Format = Literal["json", "csv", "html"]
FORMATS: tuple[Format, ...] = get_args(Format)


def report_json(report: Report) -> bytes:
    """The report as indented JSON; the same report gives the same bytes."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def render(report: Report, format_: Format) -> bytes:
    """The report in one of its formats."""
    if format_ == "json":
        return report_json(report)
    if format_ == "csv":
        return report_csv(report).encode()
    from headway.report.html.page import page  # who asks for no HTML does not load its parts

    return page(report).encode()


def write_reports(
    directory: RunDirectory, report: Report, formats: Iterable[Format] = FORMATS
) -> list[Path]:
    """Write `report.json`, `report.csv` and `report.html` into the run directory.

    Returns:
        The files that were written.

    Raises:
        DiskError: one could not be written; its former content stays.
    """
    return [
        directory.write_file(f"report.{format_}", render(report, format_)) for format_ in formats
    ]
