"""Followers of logs that cost little, so that hundreds of them fit beside a server."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from urllib.parse import urlsplit

END = b"event: end"


class RawFollower:
    """Reads a job's stream from a socket and keeps what was said as a digest.

    Args:
        server: The server's URL.
        job_id: Whom to follow.
        receive_bytes: Of the socket's buffer and of a read; small ones make a slow reader.
    """

    def __init__(self, server: str, job_id: str, receive_bytes: int = 1 << 20) -> None:
        self._address = urlsplit(server)
        self._job_id = job_id
        self._receive_bytes = receive_bytes
        self._digest = hashlib.sha256()
        self.position: str | None = None
        self.text_bytes = 0
        self.ended = False

    @property
    def digest(self) -> str:
        """Of all the text so far."""
        return self._digest.hexdigest()

    async def read(self, enough: Callable[[RawFollower], bool] = lambda _: False) -> None:
        """Read from the position on, until the job has ended or it is enough."""
        reader, writer = await asyncio.open_connection(
            self._address.hostname, self._address.port, limit=self._receive_bytes
        )
        try:
            writer.write(self._request())
            await writer.drain()
            await self._events(reader, enough)
        finally:
            writer.transport.abort()

    def _request(self) -> bytes:
        resume = f"last-event-id: {self.position}\r\n" if self.position else ""
        path = f"/v1/jobs/{self._job_id}/logs/stream"
        return f"GET {path} HTTP/1.1\r\nhost: {self._address.netloc}\r\n{resume}\r\n".encode()

    async def _events(
        self, reader: asyncio.StreamReader, enough: Callable[[RawFollower], bool]
    ) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in head.split(b"\r\n")[0], head
        rest = b""
        while not (self.ended or enough(self)):
            data = await reader.read(self._receive_bytes)
            if not data:
                return
            *events, rest = (rest + data).split(b"\n\n")
            for event in events:
                self._take(event)

    def _take(self, event: bytes) -> None:
        # The server sends each event as a chunk; what frames it stands on lines of its own.
        event = event.rpartition(b"\r\n")[2]
        if event.startswith(b"event: log\n"):
            _, position, data = event.split(b"\n")
            text = json.loads(data.removeprefix(b"data: "))["text"].encode()
            self.position = position.removeprefix(b"id: ").decode()
            self.text_bytes += len(text)
            self._digest.update(text)
        elif event.startswith(END):
            self.ended = True
