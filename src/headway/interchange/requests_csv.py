"""Every request of a run as a row of CSV: the records' own fields, absent values as empty cells."""

from __future__ import annotations

import csv
from typing import Any, TextIO

import msgspec

from headway.records.record import RequestRecord
from headway.records.run_dir import RunDirectory

_FAILURE_FIELDS = ("category", "status", "message")
_LEFT_OUT = frozenset({"failure", "gaps_ns", "partial_text"})
"""Lists and texts of any length; Parquet and records.jsonl have them."""

FIELDS = (
    *(f.name for f in msgspec.structs.fields(RequestRecord) if f.name not in _LEFT_OUT),
    "stall_ns",
    *(f"failure_{name}" for name in _FAILURE_FIELDS),
)


def write_requests_csv(directory: RunDirectory, file: TextIO) -> int:
    """Write a header and one row a request, one at a time.

    Returns:
        How many requests were written.

    Raises:
        InputError: the records are damaged.
    """
    writer = csv.DictWriter(file, fieldnames=FIELDS, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    count = 0
    for record in directory.records():
        writer.writerow(_row(record))
        count += 1
    return count


def _row(record: RequestRecord) -> dict[str, Any]:
    row = {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
    row["stall_ns"] = max(record.gaps_ns) if record.gaps_ns else None
    for name in _FAILURE_FIELDS:
        value = getattr(record.failure, name, None)
        row[f"failure_{name}"] = _as_text(value) if isinstance(value, str) else value
    return row


def _as_text(text: str) -> str:
    # A spreadsheet runs a cell that begins like a formula; the quote makes it text there.
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
