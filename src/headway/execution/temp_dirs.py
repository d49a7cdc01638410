"""Each attempt's temp directory, emptied behind it, also after kill -9 (J12)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from headway.execution.linux import is_running

PREFIX = "worker-"
KEPT = 64


class TempDirs:
    """The temp directories of one supervisor.

    A directory that an attempt left empty serves another one: making and removing directories waits
    for the file system's journal, which took 4 ms an attempt beside a store that commits.

    They lie in a directory that carries the owner's `process_name`, so that the next supervisor can
    tell what a dead one has left from what a living one uses.

    Args:
        tmp: The state directory's `tmp`.
        owner: `process_name` of this process.
    """

    def __init__(self, tmp: Path, owner: str) -> None:
        self._tmp = tmp
        self._own = str(tmp / f"{PREFIX}{owner}")
        self._empty: list[str] = []
        self._made = 0

    def open(self) -> None:
        """Remove what dead supervisors left, and make this one's own directory."""
        for path in self._tmp.glob(f"{PREFIX}*"):
            if not is_running(path.name.removeprefix(PREFIX)):
                _remove(str(path))
        os.makedirs(self._own, mode=0o700, exist_ok=True)

    def take(self) -> str:
        """An empty directory that nobody else uses.

        Raises:
            OSError: none can be made.
        """
        if self._empty:
            return self._empty.pop()
        self._made += 1
        path = f"{self._own}/{self._made}"
        os.mkdir(path, mode=0o700)
        return path

    async def give_back(self, path: str) -> None:
        """Remove what is in the directory; a big content in a thread."""
        if _is_as_new(path) and len(self._empty) < KEPT:
            self._empty.append(path)
        else:
            await asyncio.to_thread(_remove, path)

    def close(self) -> None:
        """Remove the supervisor's own directory."""
        self._empty.clear()
        _remove(self._own)


def _is_as_new(path: str) -> bool:
    """Whether it is empty and still a private directory of ours."""
    try:
        facts = os.lstat(path)
        with os.scandir(path) as content:
            return stat.S_IMODE(facts.st_mode) == 0o700 and next(content, None) is None
    except OSError:
        return False


def _remove(path: str) -> None:
    def unlock(function: Callable[..., object], name: str, _: object) -> None:
        # A job may have taken its own write permission away.
        with contextlib.suppress(OSError):
            os.chmod(os.path.dirname(name), 0o700)
            os.chmod(name, 0o700)
            function(name)

    shutil.rmtree(path, onerror=unlock)
    if os.path.lexists(path):
        shutil.rmtree(path, ignore_errors=True)
