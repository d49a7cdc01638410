"""Addresses of sockets in a directory whose own path may be longer than a socket's may be."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from headway.core.errors import ConfigError

_MAX_PATH = 100
"""Under the 104 (macOS) or 108 (Linux) bytes that an address may have."""
_LINUX: bool = sys.platform == "linux"


class SocketDir:
    """A directory with sockets; on Linux addressed by way of an open descriptor.

    Args:
        directory: Made when it does not exist.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = directory
        self._descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY) if _LINUX else None

    def address(self, name: str) -> str:
        """What to bind or connect to.

        Raises:
            ConfigError: the path is too long, and this system has no way around it.
        """
        if self._descriptor is not None:
            return f"/proc/self/fd/{self._descriptor}/{name}"
        path = str(self.path / name)
        if len(os.fsencode(path)) > _MAX_PATH:
            raise ConfigError(
                f"the path {self.path} is too long for sockets; choose a shorter --state-dir"
            )
        return path

    def close(self) -> None:
        """Closing twice is fine."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
