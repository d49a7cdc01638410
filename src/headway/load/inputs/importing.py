"""Copies a user's file, row by row, into the normalised rows that workers read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from headway.core.errors import InputError
from headway.load.inputs.formats import FileFormat, read_rows
from headway.load.inputs.problems import GraphError, Problems, RowError
from headway.load.inputs.row_file import ROWS, RowFile, RowWriter
from headway.load.inputs.rows import Row
from headway.records.record import Note


class Source(NamedTuple):
    """A file to import."""

    path: Path
    file_format: FileFormat
    work_dir: Path
    """An existing directory that workers can read."""


class Imported(NamedTuple):
    """What was read."""

    rows: RowFile
    sha256: str
    """Of the normalised rows in the file's order."""
    notes: tuple[Note, ...]


def import_rows(
    source: Source,
    parse: Callable[[dict[str, Any]], Any],
    check_stop: Callable[[], None],
    order: Callable[[], list[int] | None] = lambda: None,
) -> Imported:
    """Normalise every row of a file that can be used.

    Args:
        source: The file.
        parse: Makes of a row's fields the value to keep, or raises RowError.
        check_stop: Called for every row; raises when the work is no longer wanted.
        order: Asked at the end: the positions in the order in which rows are to be read.

    Raises:
        InputError: no row can be used, the turns of one do not fit together, or the file cannot be
            read.
        ConfigError: an extra is missing.
    """
    unit = "row" if source.file_format == "parquet" else "line"
    problems = Problems(source.path, unit)
    encoder = msgspec.json.Encoder(order="deterministic")
    digest = hashlib.sha256()
    with RowWriter(source.work_dir, ROWS) as writer:
        for row in read_rows(source.path, source.file_format):
            check_stop()
            try:
                line = _line(row, parse, encoder) if isinstance(row, Row) else row.reason
            except GraphError as error:
                raise InputError(f"{source.path}, {unit} {row.place}: {error}") from error
            if isinstance(line, str):
                problems.add(row.place, line)
                continue
            writer.append(line)
            digest.update(line + b"\n")
        rows = writer.finish(order())
    problems.check(rows.count)
    return Imported(rows, digest.hexdigest(), problems.notes(rows.count))


def _line(
    row: Row, parse: Callable[[dict[str, Any]], Any], encoder: msgspec.json.Encoder
) -> bytes | str:
    """The normalised row, or the reason why there is none."""
    try:
        return encoder.encode(parse(row.fields))
    except GraphError:
        raise
    except RowError as error:
        return str(error)
    except RecursionError:
        return "nested too deeply"
