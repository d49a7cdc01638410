"""Rows of a file, each with its place in it, and the lines that most of them come from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from headway.core.errors import InputError

MAX_LINE_BYTES = 64 << 20
"""A longer line is unusable: it is a file without line breaks, not a prompt."""


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


TOO_LONG = f"longer than {MAX_LINE_BYTES >> 20} MiB"
