"""The server that takes no time: what the client's own floor is measured against.

It is started as early as the run's workers are, because loading it takes as long as loading them,
and asked only when the floor is measured.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from headway.core.errors import WorkerLost
from headway.load.early import NullServerProcess

_READY_DEADLINE_S = 15.0


class NullServer:
    """A simulated server with no delay, in a process of its own.

    Args:
        started: Its process, where it was started before there was a run.
    """

    def __init__(self, started: NullServerProcess | None = None) -> None:
        self._started = started or NullServerProcess()
        self._process = self._started.process

    async def url(self) -> str:
        """Where it listens; waits until it does.

        Raises:
            WorkerLost: it did not get ready.
        """
        try:
            return await asyncio.wait_for(self._ready_url(), _READY_DEADLINE_S)
        except TimeoutError as error:
            raise WorkerLost("the null server did not get ready in time") from error

    def close(self) -> None:
        """End the process; safe to call twice."""
        self._started.close()

    async def _ready_url(self) -> str:
        """The URL in the first line of its output."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), self._process.stdout
        )
        try:
            line = await reader.readline()
        finally:
            transport.close()
        if not line:
            raise WorkerLost("the null server ended before it was ready")
        ready: dict[str, Any] = json.loads(line)
        return str(ready["url"])
