"""Tells a file's format and reads its rows.

A row that cannot be read is a value (`Unusable`), so that one bad line does not hide the others;
only what makes the whole file unreadable is raised.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from headway.core.errors import ConfigError, InputError
from headway.load.inputs.csv_rows import read_csv
from headway.load.inputs.json_rows import read_json
from headway.load.inputs.rows import TOO_LONG, Row, Rows, Unusable, numbered_lines, open_input

FileFormat = Literal["jsonl", "csv", "text", "parquet"]

_PARQUET_BATCH_ROWS = 1_024
_SUFFIXES: dict[str, FileFormat] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "text",
    ".text": "text",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def detect_format(path: Path) -> FileFormat:
    """Tell the format by the file's suffix, else by how it begins.

    Raises:
        InputError: neither tells, or the file cannot be read.
    """
    known = _SUFFIXES.get(path.suffix.lower())
    if known is not None:
        return known
    with open_input(path) as file:
        start = file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith((b"{", b"[")):
        return "jsonl"
    raise InputError(
        f"cannot tell the format of {path} by its name; give one of jsonl, csv, text, parquet"
    )


def read_rows(path: Path, file_format: FileFormat) -> Rows:
    """Read a file row by row, with bounded memory.

    Raises:
        InputError: the file cannot be read at all.
        ConfigError: the format needs an extra that is not installed.
    """
    readers: dict[FileFormat, Callable[[Path], Rows]] = {
        "jsonl": read_json,
        "csv": read_csv,
        "text": _read_text,
        "parquet": _read_parquet,
    }
    return readers[file_format](path)


def _read_text(path: Path) -> Rows:
    with open_input(path) as file:
        for number, line in numbered_lines(file):
            if line is None:
                yield Unusable(number, TOO_LONG)
                continue
            try:
                yield Row(number, {"prompt": line.decode()})
            except UnicodeDecodeError:
                yield Unusable(number, "not UTF-8")


def _read_parquet(path: Path) -> Rows:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ConfigError(
            f"reading {path} needs the parquet extra: pip install 'headway[parquet]'"
        ) from error
    with open_input(path) as file:
        try:
            place = 1
            for batch in parquet.ParquetFile(file).iter_batches(batch_size=_PARQUET_BATCH_ROWS):
                yield from _batch_rows(batch, place)
                place += batch.num_rows
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise InputError(f"{path} is not a readable Parquet file: {error}") from error


def _batch_rows(batch: Any, place: int) -> Rows:
    try:
        rows = batch.to_pylist()
    except UnicodeDecodeError:
        for position in range(batch.num_rows):  # one at a time, to find the bad ones
            yield from _single_row(batch.slice(position, 1), place + position)
        return
    for position, fields in enumerate(rows):
        yield _parquet_row(fields, place + position)


def _single_row(batch: Any, place: int) -> Rows:
    try:
        yield _parquet_row(batch.to_pylist()[0], place)
    except UnicodeDecodeError:
        yield Unusable(place, "not UTF-8")


def _parquet_row(fields: dict[str, Any], place: int) -> Row:
    return Row(place, {name: value for name, value in fields.items() if value is not None})
