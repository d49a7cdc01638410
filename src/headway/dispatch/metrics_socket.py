"""Workers answer with their metrics on a socket each, so that one scrape tells all (J15)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path

from headway.core.clock import Clock
from headway.core.statedir import StateDir
from headway.dispatch.socket_dir import SocketDir

_log = logging.getLogger(__name__)

_TIMEOUT_S = 2.0
_MAX_BYTES = 16 * 1024 * 1024
_SUFFIX = ".sock"
_STALE_S = 60.0
"""A socket that refuses may be one that is just being opened; after so long it is not."""


class MetricsSocket:
    """Writes the exposition to whoever connects, then closes.

    Args:
        state_dir: Names the directory of the sockets.
        name: Of the worker.
        exposition: Makes the text.
        clock: Tells how old the sockets of dead workers are.
    """

    def __init__(
        self, state_dir: StateDir, name: str, exposition: Callable[[], bytes], clock: Clock
    ) -> None:
        self._path = state_dir.metrics_sockets / f"{name}{_SUFFIX}"
        self._exposition = exposition
        self._clock = clock
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        with SocketDir(self._path.parent) as directory:
            if await _text_of(directory, self._path.name) is not None:
                _log.warning("another worker answers for the metrics as %s", self._path.stem)
                return
            await self._remove_stale(directory)
            # What a worker of this name that was killed has left behind.
            self._path.unlink(missing_ok=True)
            address = directory.address(self._path.name)
            self._server = await asyncio.start_unix_server(self._answer, address)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None
            self._path.unlink(missing_ok=True)

    async def _remove_stale(self, directory: SocketDir) -> None:
        """Remove what other workers that were killed have left behind."""
        for path in _sockets(directory):
            with contextlib.suppress(OSError):
                age_s = self._clock.now().timestamp() - path.stat().st_mtime
                if age_s > _STALE_S and await _refuses(directory, path.name):
                    path.unlink()

    async def _answer(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(_TIMEOUT_S):
                writer.write(self._exposition())
                await writer.drain()
        writer.close()


async def read_worker_metrics(state_dir: StateDir) -> dict[str, str]:
    """The metrics of every worker that answers, in Prometheus' text format, by name."""
    with SocketDir(state_dir.metrics_sockets) as directory:
        names = [path.name for path in _sockets(directory)]
        texts = await asyncio.gather(*(_text_of(directory, name) for name in names))
    return {
        name.removesuffix(_SUFFIX): text
        for name, text in zip(names, texts, strict=True)
        if text is not None
    }


def _sockets(directory: SocketDir) -> list[Path]:
    return sorted(directory.path.glob(f"*{_SUFFIX}"))


async def _text_of(directory: SocketDir, name: str) -> str | None:
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            reader, writer = await asyncio.open_unix_connection(directory.address(name))
            try:
                text = await reader.read(_MAX_BYTES)
                while chunk := await reader.read(_MAX_BYTES - len(text)):
                    text += chunk
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return None
    return text.decode()


async def _refuses(directory: SocketDir, name: str) -> bool:
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            _, writer = await asyncio.open_unix_connection(directory.address(name))
    except ConnectionRefusedError:
        return True
    except (OSError, TimeoutError):
        return False
    writer.close()
    return False
