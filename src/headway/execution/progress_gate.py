"""Progress as often as anybody can use it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headway.execution.attempt import Progress

PROGRESS_S = 0.05
"""Progress is told at once, then at most this often; the newest always."""


class ProgressGate:
    """Passes the newest progress on, not more often than every PROGRESS_S."""

    def __init__(self, tell: Callable[[Progress], None]) -> None:
        self._tell = tell
        self._newest: Progress | None = None
        self._timer: asyncio.TimerHandle | None = None

    def put(self, progress: Progress) -> None:
        """Tell of it now, or when the time has come, if nothing newer is there by then."""
        self._newest = progress
        if self._timer is None:
            self.flush()
            self._timer = asyncio.get_running_loop().call_later(PROGRESS_S, self._on_timer)

    def flush(self) -> None:
        """Tell what is newer than the last told."""
        if self._newest is not None:
            newest, self._newest = self._newest, None
            self._tell(newest)

    def close(self) -> None:
        """Tell the last, and no more."""
        self.flush()
        if self._timer is not None:
            self._timer.cancel()

    def _on_timer(self) -> None:
        self._timer = None
        if self._newest is not None:
            self.put(self._newest)
