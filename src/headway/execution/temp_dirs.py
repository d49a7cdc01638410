"""Each attempt's temp directory, removed behind it, also after kill -9 (J12)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from headway.execution.linux import is_running

PREFIX = "worker-"


class TempDirs:
    """The temp directories of one supervisor.

    They lie in a directory that carries the owner's `process_name`, so that the next supervisor can
    tell what a dead one has left from what a living one uses.

    Args:
        tmp: The state directory's `tmp`.
        owner: `process_name` of this process.
    """

    def __init__(self, tmp: Path, owner: str) -> None:
        self._tmp = tmp
        self._own = tmp / f"{PREFIX}{owner}"

    def remove_stale(self) -> None:
        """Remove what dead supervisors left."""
        for path in self._tmp.glob(f"{PREFIX}*"):
            if not is_running(path.name.removeprefix(PREFIX)):
                _remove(path)

    def make(self, job_id: str, attempt: int) -> Path:
        """A new, empty directory.

        Raises:
            OSError: it cannot be made.
        """
        path = self._own / f"{job_id}-{attempt}"
        try:
            path.mkdir(mode=0o700)
        except FileNotFoundError:
            path.mkdir(mode=0o700, parents=True)
        except FileExistsError:
            _remove(path)
            path.mkdir(mode=0o700)
        return path

    async def remove(self, path: Path) -> None:
        """Remove an attempt's directory; a big one in a thread."""
        try:
            os.rmdir(path)
        except FileNotFoundError:
            return
        except OSError:
            await asyncio.to_thread(_remove, path)

    def close(self) -> None:
        """Remove the supervisor's own directory."""
        _remove(self._own)


def _remove(path: Path) -> None:
    def unlock(function: Callable[..., object], name: str, _: object) -> None:
        # A job may have taken its own write permission away.
        with contextlib.suppress(OSError):
            os.chmod(os.path.dirname(name), 0o700)
            os.chmod(name, 0o700)
            function(name)

    shutil.rmtree(path, onerror=unlock)
    if path.exists():
        shutil.rmtree(path, ignore_errors=True)
