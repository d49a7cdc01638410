"""Normalised rows in the run's directory: written once by the parent, read by index by workers.

One JSON value a line, beside a file of byte offsets. Readers use `pread`, not a mapping: the pages
of a mapped 1 GB file would count as the worker's own memory.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Self

import msgspec

_ENTRY = struct.Struct("<QQ")
"""An entry of the index: where the row starts, how long it is."""


ROWS = "inputs"
"""What the rows of a run are called in its directory."""
PREPARED_FILES = (f"{ROWS}.jsonl", f"{ROWS}.index")


class RowFile(msgspec.Struct, frozen=True):
    """Where rows are kept."""

    data: str
    index: str
    count: int


class RowWriter:
    """Writes a `RowFile`; memory does not grow with the number of rows."""

    def __init__(self, directory: Path, name: str) -> None:
        self._data_path = (directory / f"{name}.jsonl").resolve()
        self._index_path = (directory / f"{name}.index").resolve()
        self._data: IO[bytes] = self._data_path.open("wb")
        self._index: IO[bytes] = self._index_path.open("wb")
        self._position = 0
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._data.close()
        self._index.close()

    def append(self, row: bytes) -> None:
        """Add one row of JSON (without a line break in it)."""
        self._data.write(row + b"\n")
        self._index.write(_ENTRY.pack(self._position, len(row)))
        self._position += len(row) + 1
        self._count += 1

    def finish(self, order: Iterable[int] | None = None) -> RowFile:
        """Close the files and say where they are.

        Args:
            order: The rows' positions in the order in which they are to be read; None: as written.
        """
        self._data.close()
        self._index.close()
        if order is not None:
            self._reorder(order)
        return RowFile(str(self._data_path), str(self._index_path), self._count)

    def _reorder(self, order: Iterable[int]) -> None:
        entries = self._index_path.read_bytes()
        with self._index_path.open("wb") as index:
            for position in order:
                start = position * _ENTRY.size
                index.write(entries[start : start + _ENTRY.size])


class RowReader:
    """Reads rows of a `RowFile` by index, in constant time and memory."""

    def __init__(self, rows: RowFile) -> None:
        self.count = rows.count
        self._index = os.open(rows.index, os.O_RDONLY)
        self._data = os.open(rows.data, os.O_RDONLY)
        self._close: Callable[[], None] | None = self._close_files

    def __getitem__(self, position: int) -> bytes:
        if not 0 <= position < self.count:
            raise IndexError(position)
        entry = os.pread(self._index, _ENTRY.size, position * _ENTRY.size)
        start, length = _ENTRY.unpack(entry)
        return os.pread(self._data, length, start)

    def close(self) -> None:
        """Close the files; safe to call twice."""
        if self._close is not None:
            self._close()
            self._close = None

    def _close_files(self) -> None:
        os.close(self._index)
        os.close(self._data)
