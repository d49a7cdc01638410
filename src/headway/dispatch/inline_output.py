"""The output of inline attempts: each to its own log, the server's own untouched (J4).

Inline operations share the API's process, so descriptors cannot tell their output apart; a context
variable can. What a C library or a thread of the author's own prints goes to the server's output.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from pathlib import Path
from typing import TextIO

from headway.jobs.masking import Masker, StreamMasker

_output: ContextVar[AttemptOutput | None] = ContextVar("headway_inline_output", default=None)
_CUT = b"\n[headway: the log was cut here: it reached its limit of %d bytes]\n"


class AttemptOutput:
    """Appends to one attempt's log; any thread may write.

    Args:
        path: The log, made by the first write.
        limit_bytes: Size at which it is cut, with a mark.
        may_write: False when the attempt is not the current one any more.
        on_growth: Told the new size, from the writing thread.
        masker: Takes the values of the attempt's secrets out; None: it has none.
    """

    def __init__(
        self,
        path: Path,
        limit_bytes: int,
        may_write: Callable[[], bool],
        on_growth: Callable[[int], None],
        masker: Masker | None = None,
    ) -> None:
        self._masker = None if masker is None else StreamMasker(masker)
        self._path = path
        self._limit_bytes = limit_bytes
        self._may_write = may_write
        self._on_growth = on_growth
        self._lock = threading.Lock()
        self._file: io.FileIO | None = None
        self._closed = False
        self.size_bytes = 0
        self.discarded_bytes = 0

    def write(self, data: bytes) -> None:
        with self._lock:
            if self._masker is not None:
                data = self._masker.feed(data)
            size_bytes = self._keep(data)
        if size_bytes is not None:
            self._on_growth(size_bytes)

    def enter(self) -> None:
        """Make this the output of the calling context."""
        _output.set(self)

    def close(self) -> None:
        """Write no more: what an abandoned thread still prints is dropped."""
        with self._lock:
            if self._masker is not None:
                self._keep(self._masker.flush())
            self._closed = True
            if self._file is not None:
                self._file.close()
                self._file = None

    def _keep(self, data: bytes) -> int | None:
        """Write as much as there is room for; the new size, or None when nothing was written."""
        if self._closed or not self._may_write() or self.discarded_bytes:
            self.discarded_bytes += len(data)
            return None
        if not data:
            return None
        room = self._limit_bytes - self.size_bytes
        if len(data) > room:
            self.discarded_bytes = len(data) - room
            data = data[:room] + _CUT % self._limit_bytes
        self._append(data)
        return self.size_bytes

    def _append(self, data: bytes) -> None:
        if self._file is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = io.FileIO(self._path, "ab")
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) or 0 :]
        self.size_bytes += len(data)


class OutputSwitch:
    """Stands in for `sys.stdout` and `sys.stderr`, and beside the log's handlers, while open."""

    def __init__(self) -> None:
        self._originals: tuple[TextIO, TextIO] | None = None
        self._handler = _LogHandler()

    def open(self) -> None:
        if self._originals is None:
            self._originals = sys.stdout, sys.stderr
            sys.stdout = _Switched(sys.stdout)
            sys.stderr = _Switched(sys.stderr)
            logging.getLogger().addHandler(self._handler)

    def close(self) -> None:
        """Give the streams back. Closing twice is fine."""
        if self._originals is not None:
            sys.stdout, sys.stderr = self._originals
            self._originals = None
            logging.getLogger().removeHandler(self._handler)


class _Switched(io.TextIOBase):
    """A text stream that writes to the current attempt's log, else to the original stream."""

    def __init__(self, original: TextIO) -> None:
        self._original = original

    @property
    def encoding(self) -> str:  # type: ignore[override] # io declares a plain attribute
        return "utf-8"

    def write(self, text: str) -> int:
        output = _output.get()
        if output is None:
            return self._original.write(text)
        output.write(text.encode("utf-8", "backslashreplace"))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:  # type: ignore[override] # io takes Any
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if _output.get() is None:
            self._original.flush()

    def isatty(self) -> bool:
        return _output.get() is None and self._original.isatty()

    def fileno(self) -> int:
        return self._original.fileno()

    def writable(self) -> bool:
        return True


class _LogHandler(logging.Handler):
    """Writes what inline code logs to its attempt's log."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        output = _output.get()
        if output is not None:
            output.write(f"{self.format(record)}\n".encode("utf-8", "backslashreplace"))
