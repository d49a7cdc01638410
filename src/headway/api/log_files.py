"""Reading the logs that attempts leave in the state directory."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import anyio

PIECE_BYTES = 64 * 1024
POSITION_PATTERN = r"^[0-9]{1,6}:[0-9]{1,15}$"


@dataclass(frozen=True, order=True)
class LogPosition:
    """A place in a job's logs: an attempt, and a byte offset in that attempt's log."""

    attempt: int
    offset: int

    @classmethod
    def parse(cls, text: str) -> LogPosition:
        """The position written as `attempt:byte-offset`."""
        attempt, _, offset = text.partition(":")
        return cls(int(attempt), int(offset))

    def __str__(self) -> str:
        return f"{self.attempt}:{self.offset}"


class JobLogs:
    """One job's logs, an append-only file for each attempt.

    Args:
        path_of: Where the log of an attempt is; it need not exist.
    """

    def __init__(self, path_of: Callable[[int], Path]) -> None:
        self._path_of = path_of

    def size_bytes(self, attempt: int) -> int:
        """How long the attempt's log is now; 0 when there is none."""
        try:
            return self._path_of(attempt).stat().st_size
        except FileNotFoundError:
            return 0

    async def read(self, position: LogPosition, limit_bytes: int = PIECE_BYTES) -> bytes:
        """At most `limit_bytes` of what follows `position`; empty at the end.

        What was just written is in the page cache and is read at once. Only a reader that is far
        behind may wait for the disk, and does so in a thread: 200 followers at the end of one log
        then cost 200 short reads and no thread (J20).
        """
        behind_bytes = self.size_bytes(position.attempt) - position.offset
        if behind_bytes <= 0:
            return b""
        path = self._path_of(position.attempt)
        if behind_bytes <= PIECE_BYTES:
            return _read_at(path, position.offset, limit_bytes)
        return await anyio.to_thread.run_sync(_read_at, path, position.offset, limit_bytes)

    async def pieces(self, start: LogPosition, end: LogPosition) -> AsyncIterator[bytes]:
        """All bytes from `start` up to `end`, which lies still while the log may grow."""
        for attempt in range(start.attempt, end.attempt + 1):
            offset = start.offset if attempt == start.attempt else 0
            # Taken once: a download of a growing log must come to an end.
            stop = end.offset if attempt == end.attempt else self.size_bytes(attempt)
            while offset < stop:
                here = LogPosition(attempt, offset)
                piece = await self.read(here, min(PIECE_BYTES, stop - offset))
                if not piece:
                    break
                offset += len(piece)
                yield piece

    def tail(self, lines: int, first: int, last: int, limit_bytes: int) -> LogPosition:
        """Where the last `lines` lines of the attempts `first` to `last` begin.

        Args:
            lines: >= 0; an unfinished last line counts.
            first: The oldest attempt to look into.
            last: The newest attempt.
            limit_bytes: Looks back no further than this in one log, so that a log of one endless
                line costs no more than others.
        """
        if lines == 0:
            return LogPosition(last, self.size_bytes(last))
        for attempt in range(last, first - 1, -1):
            found, offset = self._line_starts(attempt, lines, limit_bytes)
            if found >= lines or attempt == first:
                return LogPosition(attempt, offset)
            lines -= found
        return LogPosition(first, 0)

    def _line_starts(self, attempt: int, lines: int, limit_bytes: int) -> tuple[int, int]:
        """How many lines (at most `lines`) end this log, and where the first of them begins."""
        size = self.size_bytes(attempt)
        found, end = 0, size
        while end > 0 and size - end < limit_bytes:
            start = max(0, end - PIECE_BYTES)
            block = _read_at(self._path_of(attempt), start, end - start)
            # The newline that ends the log ends its last line and begins no other.
            stop = len(block) - 1 if end == size and block.endswith(b"\n") else len(block)
            while (at := block.rfind(b"\n", 0, stop)) >= 0:
                found += 1
                if found == lines:
                    return found, start + at + 1
                stop = at
            end = start
        if end > 0:
            # Too far back to look: what is shown begins here, whatever line that is in.
            return lines, end
        return found + (1 if size > 0 else 0), 0


def _read_at(path: Path, offset: int, limit_bytes: int) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    try:
        return os.pread(descriptor, limit_bytes, offset)
    finally:
        os.close(descriptor)
