"""What a client sends around a chunked body: it is bounded, and never taken for its header."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headway.api.limits import ConnectionLimits
from headway.api.listening import listening_socket
from headway.api.web_server import WebServer

PATIENCE_S = 60.0
LIMITS = ConnectionLimits(head_bytes=4096)
HEAD = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answers with the names of the header, once the body is whole."""
    while (await receive()).get("more_body"):
        pass
    names = b",".join(name for name, _ in scope["headers"])
    length = (b"content-length", str(len(names)).encode())
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": names})


async def refusing(scope: Any, receive: Any, send: Any) -> None:
    """Answers without reading, as to somebody who may not."""
    headers = [(b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body"})


@asynccontextmanager
async def connected(
    app: Any,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    listening = listening_socket("127.0.0.1", 0)
    server = WebServer(app, LIMITS)
    task = asyncio.create_task(server.serve([listening]))
    try:
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection(*listening.getsockname()[:2])
            yield reader, writer
            writer.close()
    finally:
        server.should_exit = True
        await task


async def names_answered(reader: asyncio.StreamReader) -> bytes:
    """The body of a good answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in head
    length = head.partition(b"content-length: ")[2].split()[0]
    return await reader.readexactly(int(length))


async def sent_without_end(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, piece: bytes
) -> bytes:
    """Send the piece until the server ends the connection; what it answered."""
    try:
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
    except ConnectionError:
        pass
    answered = bytearray()
    try:
        while read := await reader.read(65536):
            answered += read
    except ConnectionError:
        pass
    return bytes(answered)


async def test_fields_behind_a_body_are_not_taken_for_its_header() -> None:
    """A proxy in front cleans the header of what it vouches for, and not what follows the body."""
    async with connected(application) as (reader, writer):
        trailer = b"authorization: Bearer x\r\nx-forwarded-for: 10.0.0.1\r\nhost: y\r\n"
        writer.write(HEAD + b"2\r\nab\r\n0\r\n" + trailer + b"\r\n")
        assert await names_answered(reader) == b"host,transfer-encoding"


async def test_the_next_request_of_the_connection_has_its_own_header() -> None:
    async with connected(application) as (reader, writer):
        for name in (b"one", b"two"):
            writer.write(
                b"POST / HTTP/1.1\r\n" + name + b": 1\r\ntransfer-encoding: chunked\r\n\r\n"
                b"0\r\nlate: 1\r\n\r\n"
            )
            assert await names_answered(reader) == name + b",transfer-encoding"


@pytest.mark.parametrize("begin", [b"0\r\nx: ", b"0\r\nx", b"1;"], ids=["value", "name", "chunk"])
async def test_what_stands_around_a_body_has_an_end(begin: bytes) -> None:
    """One connection with an endless field would take memory, and all the time of the server."""
    async with connected(application) as (reader, writer):
        writer.write(HEAD + begin)
        answered = await sent_without_end(reader, writer, b"a" * 4096)
        assert answered == b"" or b" 431 " in answered


async def test_who_was_answered_already_gets_no_second_answer() -> None:
    async with connected(refusing) as (reader, writer):
        writer.write(HEAD + b"0\r\nx: ")
        head = await reader.readuntil(b"\r\n\r\n")
        assert b" 401 " in head
        assert await sent_without_end(reader, writer, b"a" * 4096) == b""


async def test_a_body_in_many_small_chunks_passes() -> None:
    async with connected(application) as (reader, writer):
        writer.write(HEAD)
        for _ in range(20):
            writer.write(b"1\r\na\r\n" * 1000)  # six bytes for each of the body
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
