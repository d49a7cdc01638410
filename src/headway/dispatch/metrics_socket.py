"""The worker process answers with its metrics on a socket, so that one scrape tells all (J15)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from headway.core.statedir import StateDir
from headway.dispatch.socket_dir import SocketDir

_log = logging.getLogger(__name__)

_TIMEOUT_S = 2.0
_MAX_BYTES = 16 * 1024 * 1024


class MetricsSocket:
    """Writes the exposition to whoever connects, then closes.

    Args:
        state_dir: Names the socket.
        exposition: Makes the text.
    """

    def __init__(self, state_dir: StateDir, exposition: Callable[[], bytes]) -> None:
        self._state_dir = state_dir
        self._path = state_dir.metrics_socket
        self._exposition = exposition
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        if await read_worker_metrics(self._state_dir) is not None:
            # The page of metrics has room for one worker; a second one must not take its place.
            _log.warning("another worker of this directory answers for the metrics already")
            return
        # What a worker that was killed has left behind.
        self._path.unlink(missing_ok=True)
        with SocketDir(self._path.parent) as directory:
            address = directory.address(self._path.name)
            self._server = await asyncio.start_unix_server(self._answer, address)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None
            self._path.unlink(missing_ok=True)

    async def _answer(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(_TIMEOUT_S):
                writer.write(self._exposition())
                await writer.drain()
        writer.close()


async def read_worker_metrics(state_dir: StateDir) -> str | None:
    """The worker's metrics in Prometheus' text format; None when no worker answers."""
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            with SocketDir(state_dir.metrics_socket.parent) as directory:
                address = directory.address(state_dir.metrics_socket.name)
                reader, writer = await asyncio.open_unix_connection(address)
            try:
                text = await reader.read(_MAX_BYTES)
                while chunk := await reader.read(_MAX_BYTES - len(text)):
                    text += chunk
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return None
    return text.decode()
