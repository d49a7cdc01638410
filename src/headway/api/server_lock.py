"""One server for a state directory, said in a sentence when a second one tries."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from headway.core.errors import ConfigError


class ServerLock:
    """The lock of a state directory, held by the open descriptor of its server.

    The kernel lets go of it when the process dies in whatever way, so nothing stale is ever left:
    the file's content only names the holder for people.

    Args:
        path: The lock file, in a directory that exists.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        """Take the lock.

        Raises:
            ConfigError: another server has it.
        """
        # Not inheritable: a worker that outlives its server must not keep the lock (trap 25b).
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(descriptor)
            os.close(descriptor)
            raise ConfigError(
                f"a Headway server already uses {self._path.parent.parent}{holder};"
                " stop it, or choose another directory with --state-dir"
            ) from None
        self._descriptor = descriptor
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            # Closing is not enough: a child that is being started has its own copy for a moment,
            # even after its parent goes on, and the lock is the open file's, not the descriptor's.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
            self._descriptor = None

    def announce(self, url: str) -> None:
        """Write down who holds the lock and where it answers."""
        assert self._descriptor is not None, "announce() is called inside the with block"
        os.ftruncate(self._descriptor, 0)
        text = json.dumps({"pid": os.getpid(), "url": url})
        os.pwrite(self._descriptor, text.encode(), 0)


def _holder(descriptor: int) -> str:
    try:
        said = json.loads(os.pread(descriptor, 4096, 0))
        return f" (process {said['pid']}, {said['url']})"
    except (ValueError, KeyError, TypeError):
        return ""  # it has the lock and has not written its name yet
