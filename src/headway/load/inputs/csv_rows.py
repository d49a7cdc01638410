"""Reads rows from CSV, with the line at which each begins."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from headway.load.inputs.rows import MAX_LINE_BYTES, Row, Rows, Unusable, open_input


def read_csv(path: Path) -> Rows:
    """Rows under a header; separated by comma, semicolon or tab, as the header is."""
    with open_input(path) as raw:
        start = raw.read(64 << 10).decode("utf-8-sig", errors="replace")
    delimiter = _delimiter(path, start)
    previous_limit = csv.field_size_limit(MAX_LINE_BYTES)  # 128 KiB by default: a long prompt
    try:
        # Bytes that are not UTF-8 become lone surrogates, which `_csv_row` finds in its row.
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            yield from _csv_rows(csv.reader(file, delimiter=delimiter))
    finally:
        csv.field_size_limit(previous_limit)


def _delimiter(path: Path, start: str) -> str:
    header = start.lstrip("\r\n").split("\n", 1)[0]
    if path.suffix.lower() == ".tsv" or ("\t" in header and "," not in header):
        return "\t"
    return ";" if ";" in header and "," not in header else ","


def _csv_rows(reader: Any) -> Rows:
    header: list[str] | None = None
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield Unusable(line, f"not CSV ({error})")
            continue
        if cells is None:
            return
        if not any(cell.strip() for cell in cells):
            continue
        if header is None:
            header = [cell.strip() for cell in cells]
            if any(_has_surrogate(name) for name in header):
                yield Unusable(line, "the header is not UTF-8")
                return
        else:
            yield _csv_row(line, header, cells)


def _csv_row(line: int, header: list[str], cells: list[str]) -> Row | Unusable:
    if len(cells) != len(header):
        return Unusable(line, f"{len(cells)} cells where the header has {len(header)}")
    if any(_has_surrogate(cell) for cell in cells):
        return Unusable(line, "not UTF-8")
    return Row(line, dict(zip(header, cells, strict=True)))


def _has_surrogate(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)
