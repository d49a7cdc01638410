"""Reads rows from JSONL, JSON arrays, CSV, text and Parquet, each with its place in the file.

A row that cannot be read is a value (`Unusable`), so that one bad line does not hide the others;
only what makes the whole file unreadable is raised.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import msgspec

from headway.core.errors import ConfigError, InputError
from headway.load.inputs.json_array import ArrayElements, ArrayError

FileFormat = Literal["jsonl", "csv", "text", "parquet"]

MAX_LINE_BYTES = 64 << 20
"""A longer line is unusable: it is a file without line breaks, not a prompt."""
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


class Row(NamedTuple):
    """A row that could be read."""

    place: int
    """Its line; its position where rows are no lines (JSON array, Parquet). From 1."""
    fields: dict[str, Any]


class Unusable(NamedTuple):
    """A row that could not."""

    place: int
    reason: str


Rows = Iterator[Row | Unusable]


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
        "jsonl": _read_json,
        "csv": _read_csv,
        "text": _read_text,
        "parquet": _read_parquet,
    }
    return readers[file_format](path)


def open_input(path: Path) -> BinaryIO:
    """Open a file of the user's.

    Raises:
        InputError: it cannot be opened.
    """
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def numbered_lines(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Lines without their ends, from line 1; None for a line longer than MAX_LINE_BYTES.

    Blank lines are left out, and so is a byte order mark.
    """
    number = 0
    while line := file.readline(MAX_LINE_BYTES):
        number += 1
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if len(line) >= MAX_LINE_BYTES and not line.endswith(b"\n"):
            _skip_to_line_end(file)
            yield number, None
        elif line.strip():
            yield number, line.rstrip(b"\r\n")


def _skip_to_line_end(file: BinaryIO) -> None:
    while rest := file.readline(MAX_LINE_BYTES):
        if rest.endswith(b"\n"):
            return


_TOO_LONG = f"longer than {MAX_LINE_BYTES >> 20} MiB"


# --- JSON ----------------------------------------------------------------------------------------


def _read_json(path: Path) -> Rows:
    with open_input(path) as file:
        if _is_one_array(file):
            yield from _read_array(path, file)
            return
        for number, line in numbered_lines(file):
            yield Unusable(number, _TOO_LONG) if line is None else _json_row(number, line)


def _json_row(place: int, text: bytes) -> Row | Unusable:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return Unusable(place, f"not JSON ({error})")
    if isinstance(value, dict):
        return Row(place, value)
    if isinstance(value, str):
        return Row(place, {"prompt": value})
    if _is_messages(value):
        return Row(place, {"messages": value})
    return Unusable(place, "neither an object, a text nor a list of messages")


def _is_one_array(file: BinaryIO) -> bool:
    # A file of rows may be one JSON array (ShareGPT), or JSON lines of which each is a list of
    # messages. The first line decides: a whole list of messages makes it the latter.
    first = next(numbered_lines(file), (0, b""))[1]
    file.seek(0)
    if first is None or not first.lstrip().startswith(b"["):
        return first is None and file.peek(1)[:1] == b"["  # type: ignore[attr-defined] # buffered
    try:
        return not _is_messages(msgspec.json.decode(first))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True


def _is_messages(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) and ("role" in one or "from" in one) for one in value)
    )


def _read_array(path: Path, file: BinaryIO) -> Rows:
    try:
        for place, element in enumerate(ArrayElements(file), start=1):
            yield _json_row(place, element)
    except ArrayError as error:
        raise InputError(f"{path} begins as a JSON array but is none: {error}") from error


# --- CSV and text --------------------------------------------------------------------------------


def _read_csv(path: Path) -> Rows:
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


def _read_text(path: Path) -> Rows:
    with open_input(path) as file:
        for number, line in numbered_lines(file):
            if line is None:
                yield Unusable(number, _TOO_LONG)
                continue
            try:
                yield Row(number, {"prompt": line.decode()})
            except UnicodeDecodeError:
                yield Unusable(number, "not UTF-8")


# --- Parquet -------------------------------------------------------------------------------------


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
            place = 0
            for batch in parquet.ParquetFile(file).iter_batches(batch_size=_PARQUET_BATCH_ROWS):
                for fields in batch.to_pylist():
                    place += 1
                    yield Row(place, {k: v for k, v in fields.items() if v is not None})
        except (pyarrow.ArrowException, OSError) as error:
            raise InputError(f"{path} is not a readable Parquet file: {error}") from error
