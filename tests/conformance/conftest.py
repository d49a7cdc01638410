"""A server that plays exact bytes, and event loops of both kinds for the transport tests."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop

CONTENT_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The transports run on both event loops, everything else on the plain one."""
    if item.path.name.startswith("test_transport"):
        return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
    return {"asyncio": asyncio.new_event_loop}


class Step:
    """Something that a script does besides sending bytes."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


CLOSE = Step("CLOSE")
RESET = Step("RESET")
SILENCE = Step("SILENCE")
"""Say nothing until the client goes."""

Reply = Sequence["bytes | Step | asyncio.Event"]
"""What is done after one request: bytes are sent, an event is awaited."""


@dataclass
class ScriptedServer:
    """Plays a list of replies on each connection, in the order in which they are accepted.

    The last connection's script serves every further one.
    """

    scripts: list[list[Reply]]
    url: str = ""
    requests: list[tuple[bytes, bytes]] = field(default_factory=list)
    connections: int = 0
    request_came: asyncio.Event = field(default_factory=asyncio.Event)
    client_left: asyncio.Event = field(default_factory=asyncio.Event)
    peer_certificates: list[Any] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _server: asyncio.Server | None = None

    async def listen(
        self, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None, uds: Path | None = None
    ) -> None:
        if uds is not None:
            self._server = await asyncio.start_unix_server(self._accept, uds)
            self.url = f"unix://{uds}"
            return
        self._server = await asyncio.start_server(self._accept, host, 0, ssl=tls)
        port = self._server.sockets[0].getsockname()[1]
        name = f"[{host}]" if ":" in host else host
        self.url = f"{'https' if tls else 'http'}://{name}:{port}"

    async def wait_requests(self, count: int, timeout_s: float = 5.0) -> None:
        async with asyncio.timeout(timeout_s):
            while len(self.requests) < count:
                self.request_came.clear()
                await self.request_came.wait()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        script = self.scripts[min(self.connections, len(self.scripts) - 1)]
        self.connections += 1
        self.peer_certificates.append(writer.get_extra_info("peercert"))
        try:
            for reply in script:
                self.requests.append(await read_request(reader))
                self.request_came.set()
                await self._play(reply, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.client_left.set()
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _play(
        self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        for step in reply:
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
                # Lets the client read what was sent before the next piece follows.
                await asyncio.sleep(0)
            elif isinstance(step, asyncio.Event):
                await step.wait()
            elif step is SILENCE:
                await reader.read()
                raise ConnectionError("the client left")
            else:
                if step is RESET:
                    sock = writer.get_extra_info("socket")
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    writer.transport.abort()
                raise ConnectionError("the script ends here")


async def read_request(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = CONTENT_LENGTH.search(head)
    return head, await reader.readexactly(int(length[1])) if length else b""


Scripted = Callable[..., Awaitable[ScriptedServer]]


@pytest.fixture
async def scripted() -> AsyncIterator[Scripted]:
    """A factory: `await scripted([reply, reply], [reply], tls=context)`, one list a connection."""
    servers: list[ScriptedServer] = []

    async def start(*scripts: list[Reply], **options: Any) -> ScriptedServer:
        server = ScriptedServer(list(scripts))
        await server.listen(**options)
        servers.append(server)
        return server

    yield start
    for server in servers:
        await server.close()


def whole(body: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


def chunked(*pieces: bytes, headers: str = "") -> bytes:
    head = f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{headers}\r\n".encode()
    framed = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return head + framed + b"0\r\n\r\n"


@pytest.fixture
def play() -> SimpleNamespace:
    """What scripts are made of, for tests, which cannot import this file."""
    return SimpleNamespace(close=CLOSE, reset=RESET, silence=SILENCE, whole=whole, chunked=chunked)
