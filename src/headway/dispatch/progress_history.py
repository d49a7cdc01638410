"""What an attempt told of its progress over time: a row holds only the last of it."""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from headway.core.clock import NS_PER_S, Clock
from headway.store.jobs import Progress

_log = logging.getLogger(__name__)

MIN_GAP_NS = NS_PER_S // 2
"""Between two kept lines: a chart of ten minutes has 1,200 points, more than a screen is wide."""
LIMIT_BYTES = 4 * 1024 * 1024


class ProgressLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the history.

    Attributes:
        at_s: UTC, in seconds since the epoch.
        numbers: Whatever the job counts.
    """

    at_s: float
    numbers: dict[str, float]


class ProgressHistory:
    """Keeps the numbers of one attempt, thinned out, in a file beside its log.

    Only a write that the store accepted belongs here, so a stale attempt adds nothing.

    Args:
        path: The file; made with the first line.
        clock: Says when.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._next_ns = 0
        self._left_bytes = LIMIT_BYTES

    def add(self, progress: Progress) -> None:
        """Keep the numbers, unless the last ones are too near or the file is full."""
        now_ns = self._clock.monotonic_ns()
        if not progress.numbers or now_ns < self._next_ns:
            return
        at_s = self._clock.now().timestamp()
        line = msgspec.json.encode(ProgressLine(at_s=at_s, numbers=dict(progress.numbers))) + b"\n"
        if len(line) > self._left_bytes:
            return
        self._next_ns = now_ns + MIN_GAP_NS
        self._left_bytes -= len(line)
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                file.write(line)
        except OSError as error:
            # A chart with a gap is no reason to fail a job.
            _log.warning("the progress in %s was not kept: %s", self._path.name, error)
