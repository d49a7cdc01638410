"""Moves an attempt's output from its pipe to its log file."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headway.execution.attempt import LogSummary
from headway.jobs.masking import StreamMasker

READ_BYTES = 256 * 1024
PIPE_BYTES = 256 * 1024
REST_S = 0.002
"""After a read that did not fill the buffer the pump rests for so long and lets lines gather.
Without it a job that prints 100,000 short lines a second wakes the event loop for nearly each."""
LISTEN_AFTER_S = 0.005
"""An attempt that is over by then, and printed little, wakes nobody for its output: it is read at
the end."""
NOTICE_S = 0.005
"""Growth is told at once, then at most this often."""
DRAIN_LIMIT_S = 2.0
READS_PER_TURN = 4
HOLD_S = 0.05

_CUT = b"\n[headway: the log was cut here: it reached its limit of %d bytes]\n"
_LOST = b"\n[headway: %d bytes were lost here: %s]\n"


@dataclass(frozen=True, slots=True)
class LogRules:
    """What the pump must respect.

    Attributes:
        limit_bytes: Size at which the log is cut.
        may_write: False while the attempt's lease is over: the pump then holds still, because the
            lease may yet be renewed.
        on_growth: Told the new size, coalesced.
        masker: Takes the values of the attempt's secrets out; None: it has none.
    """

    limit_bytes: int
    may_write: Callable[[], bool]
    on_growth: Callable[[int], None]
    masker: StreamMasker | None = None


class LogPump:
    """Reads a pipe without ever waiting for it, and appends to a file that it makes on first need.

    Args:
        path: Says where the attempt's log is. Never another attempt's, so appending can mix
            nothing. Not asked for an attempt that prints nothing.
    """

    def __init__(self, path: Callable[[], Path], rules: LogRules) -> None:
        self._path = path
        self._rules = rules
        self._loop = asyncio.get_running_loop()
        self._reader: int | None = None
        self._file: int | None = None
        self._size = 0
        self._discarded = 0
        self._unmarked = 0
        self._why = ""
        self._cut = False
        self._complete = True
        self._finishing = False
        self._notice: asyncio.TimerHandle | None = None
        self._rest: asyncio.TimerHandle | None = None
        self._told = 0
        self._end: asyncio.Future[None] = self._loop.create_future()

    def open(self) -> int:
        """Make the pipe; returns its writing end, which the caller sends away and closes."""
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        with contextlib.suppress(OSError, AttributeError):
            fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._rest = self._loop.call_later(LISTEN_AFTER_S, self._wake)
        return writer

    async def finish(self) -> LogSummary:
        """Read to the end of the pipe.

        It stops after DRAIN_LIMIT_S when a survivor holds the pipe open, or when the attempt may
        not write: what is left then is dropped.
        """
        self._finishing = True
        self._end_rest()
        # Not waiting for anything here: only letting others have their turn.
        while self._read():  # noqa: ASYNC110 -- see above
            await asyncio.sleep(0)
        if self._reader is not None:
            if self._rest is None:
                self._loop.add_reader(self._reader, self._on_readable)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_LIMIT_S):
                    await asyncio.shield(self._end)
        self._complete = self._complete and self._reader is None
        self._append_masked_rest()
        self._close()
        return LogSummary(self._size, self._discarded, self._complete)

    def _on_readable(self) -> None:
        for _ in range(READS_PER_TURN):
            if self._read() < READ_BYTES // 2:
                break
        else:
            return
        if self._reader is not None and not (self._finishing or self._rest):
            self._pause(REST_S)

    def _pause(self, seconds: float) -> None:
        assert self._reader is not None
        self._loop.remove_reader(self._reader)
        self._rest = self._loop.call_later(seconds, self._wake)

    def _wake(self) -> None:
        self._rest = None
        if self._reader is not None:
            self._loop.add_reader(self._reader, self._on_readable)

    def _end_rest(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None

    def _read(self) -> int:
        """Move one buffer; returns its size, 0 when there is nothing now or ever."""
        if self._reader is None:
            return 0
        if not self._rules.may_write():
            self._pause(HOLD_S)
            return 0
        try:
            data = os.read(self._reader, READ_BYTES)
        except BlockingIOError:
            return 0
        if data:
            masker = self._rules.masker
            self._append(data if masker is None else masker.feed(data))
        else:
            self._close_reader()
        return len(data)

    def _append_masked_rest(self) -> None:
        masker = self._rules.masker
        if masker is not None and self._rules.may_write() and (rest := masker.flush()):
            self._append(rest)

    def _append(self, data: bytes) -> None:
        if self._unmarked and not self._mark_loss():
            self._discarded += len(data)
            self._unmarked += len(data)
            return
        room = 0 if self._cut else max(0, self._rules.limit_bytes - self._size)
        if room:
            self._write(data[:room])
        if len(data) > room:
            self._discarded += len(data) - room
            self._mark_cut()
        self._tell()

    def _mark_cut(self) -> None:
        if not self._cut:
            self._cut = True
            self._write(_CUT % self._rules.limit_bytes)

    def _write(self, data: bytes) -> bool:
        view = memoryview(data)
        try:
            while view:
                written = os.write(self._opened(), view)
                self._size += written
                view = view[written:]
        except OSError as error:
            # A full disk costs log, never the job or its supervisor; a mark follows when it can.
            self._why = error.strerror or str(error)
            self._complete = False
            self._discarded += len(view)
            self._unmarked += len(view)
            return False
        return True

    def _mark_loss(self) -> bool:
        lost, self._unmarked = self._unmarked, 0
        discarded = self._discarded
        if self._write(_LOST % (lost, self._why.encode())):
            return True
        # The mark itself is no output that was lost.
        self._unmarked, self._discarded = lost, discarded
        return False

    def _opened(self) -> int:
        if self._file is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            path = self._path()
            try:
                self._file = os.open(path, flags, 0o600)
            except FileNotFoundError:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._file = os.open(path, flags, 0o600)
            self._size += os.fstat(self._file).st_size
        return self._file

    def _tell(self) -> None:
        if self._notice is None and self._size > self._told:
            self._told = self._size
            self._rules.on_growth(self._size)
            self._notice = self._loop.call_later(NOTICE_S, self._tell_later)

    def _tell_later(self) -> None:
        self._notice = None
        self._tell()

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._loop.remove_reader(self._reader)
            os.close(self._reader)
            self._reader = None
        if not self._end.done():
            self._end.set_result(None)

    def _close(self) -> None:
        self._close_reader()
        for timer in (self._notice, self._rest):
            if timer is not None:
                timer.cancel()
        if self._size > self._told:
            self._rules.on_growth(self._size)
        if self._file is not None:
            os.close(self._file)
            self._file = None
