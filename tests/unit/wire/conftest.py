"""A server on a real socket whose every connection a test's own coroutine serves."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

Handler = Callable[[int, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Serve = Callable[..., Awaitable[str]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """A factory: `await serve(handler)` is the URL; the handler is told which connection it has.

    When the handler returns, its connection is closed.
    """
    servers: list[asyncio.Server] = []
    tasks: set[asyncio.Task[None]] = set()

    async def start(handler: Handler, tls: ssl.SSLContext | None = None) -> str:
        connections = 0

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connections
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            number, connections = connections, connections + 1
            try:
                with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                    await handler(number, reader, writer)
            finally:
                writer.close()
                tasks.discard(task)

        server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
        servers.append(server)
        port = server.sockets[0].getsockname()[1]
        return f"{'https' if tls else 'http'}://127.0.0.1:{port}"

    yield start
    for server in servers:
        server.close()
    for task in list(tasks):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
