"""The fastest client that Python can have here: uvloop, httptools, and nothing kept.

It shows what a transport costs above its parts.
"""

from __future__ import annotations

import asyncio
import time

import httptools


class BareConnection(asyncio.Protocol):
    def __init__(self, request: bytes, counter: Counter) -> None:
        self.request = request
        self.counter = counter
        self.parser = httptools.HttpResponseParser(self)
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self.counter.chunks += 1

    def on_message_complete(self) -> None:
        self.counter.requests += 1
        if time.monotonic() < self.counter.until_s:
            self.transport.write(self.request)
        else:
            self.counter.live -= 1
            if not self.counter.live:
                self.counter.ended.set()


class Counter:
    def __init__(self, connections: int, until_s: float) -> None:
        self.requests = 0
        self.chunks = 0
        self.live = connections
        self.until_s = until_s
        self.ended = asyncio.Event()


async def run(port: int, request: bytes, connections: int, seconds: float) -> float:
    """Requests per second with one in flight on each connection."""
    loop = asyncio.get_running_loop()
    began_s = time.monotonic()
    counter = Counter(connections, began_s + seconds)
    for _ in range(connections):
        await loop.create_connection(lambda: BareConnection(request, counter), "127.0.0.1", port)
    await counter.ended.wait()
    elapsed_s = time.monotonic() - began_s
    return counter.requests / elapsed_s
