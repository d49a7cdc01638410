"""Collects a result while the child lives: small ones in memory, big ones in a file (trap 4)."""

from __future__ import annotations

import os
from pathlib import Path

from headway.execution.attempt import Succeeded

INLINE_BYTES = 256 * 1024


class ResultSink:
    """Takes the parts of a result's JSON text.

    Args:
        directory: Where a result over INLINE_BYTES goes, as `ATTEMPT.json`; it appears there only
            when it is complete.
    """

    def __init__(self, directory: Path, attempt: int) -> None:
        self._directory = directory
        self._name = f"{attempt}.json"
        self._memory = bytearray()
        self._file: int | None = None
        self._size = 0
        self._error: OSError | None = None

    def add(self, data: bytes) -> None:
        """Take the next part. An error of the disk is kept for `complete`."""
        self._size += len(data)
        if self._error is not None:
            return
        try:
            if self._file is None and self._size <= INLINE_BYTES:
                self._memory += data
            else:
                self._write(data)
        except OSError as error:
            self._error = error
            self.discard()

    def complete(self, size_bytes: int | None) -> Succeeded:
        """The finished result.

        Args:
            size_bytes: What the child sent; None when the result is not kept.

        Raises:
            OSError: it could not be written.
        """
        if self._error is not None:
            raise self._error
        if size_bytes is None:
            return Succeeded(None)
        assert size_bytes == self._size, "a part of the result is missing"
        if self._file is None:
            return Succeeded(bytes(self._memory), None, self._size)
        # On disk before the row that refers to it is committed.
        os.fsync(self._file)
        os.close(self._file)
        self._file = None
        path = self._directory / self._name
        self._partial.replace(path)
        return Succeeded(None, path, self._size)

    def discard(self) -> None:
        """Forget what came so far."""
        self._memory.clear()
        if self._file is not None:
            os.close(self._file)
            self._file = None
            self._partial.unlink(missing_ok=True)

    @property
    def _partial(self) -> Path:
        return self._directory / f"{self._name}.partial"

    def _write(self, data: bytes) -> None:
        if self._file is None:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            data, self._memory = bytes(self._memory) + data, bytearray()
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]
