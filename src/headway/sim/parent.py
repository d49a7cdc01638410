"""Ending with the parent process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

_POLL_INTERVAL_S = 0.5


class ParentWatch:
    """Calls `died` once the process that started this one has ended.

    Linux tells by a pidfd, at once; elsewhere the parent's id is compared twice a second.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, died: Callable[[], None]) -> None:
        self._loop = loop
        self._died = died
        self._parent = os.getppid()
        self._pidfd: int | None = None
        if hasattr(os, "pidfd_open"):
            try:
                self._pidfd = os.pidfd_open(self._parent)
                loop.add_reader(self._pidfd, self._ended)
            except OSError:
                self._pidfd = None  # ended already, or an old kernel: the poll below tells
        self._handle = loop.call_soon(self._poll)

    def close(self) -> None:
        """Stop watching."""
        self._handle.cancel()
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    def _poll(self) -> None:
        if os.getppid() != self._parent:
            self._ended()
        elif self._pidfd is None:
            self._handle = self._loop.call_later(_POLL_INTERVAL_S, self._poll)

    def _ended(self) -> None:
        self.close()
        self._died()
