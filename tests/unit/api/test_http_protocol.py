"""N5: what a client may send before there is a request, and how slowly; over real connections."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headway.api.http_protocol import Connections
from headway.api.limits import ConnectionLimits
from headway.api.listening import listening_socket
from headway.api.web_server import WebServer

LIMITS = ConnectionLimits(
    most=8, head_bytes=4096, url_bytes=1024, header_fields=20, head_s=0.3, body_s=0.3,
    body_bytes_per_s=1_000_000, unread_s=0.3,
)  # fmt: skip
PATIENCE_S = 30.0
GET = b"GET /%s HTTP/1.1\r\nhost: x\r\n%s\r\n"
BIG = 64 * 1024 * 1024


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Reads the body and tells its size; `/big` answers with more than a socket holds."""
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/big":
        for _ in range(BIG // 65536):
            await send({"type": "http.response.body", "body": bytes(65536), "more_body": True})
    await send({"type": "http.response.body", "body": str(size).encode()})


@asynccontextmanager
async def serving(limits: ConnectionLimits = LIMITS) -> AsyncIterator[tuple[str, int]]:
    listening = listening_socket("127.0.0.1", 0)
    server = WebServer(application, limits)
    task = asyncio.create_task(server.serve([listening]))
    try:
        yield listening.getsockname()[:2]
    finally:
        server.should_exit = True
        await task


async def answer_to(address: tuple[str, int], *pieces: bytes) -> tuple[int, dict[str, Any]]:
    """The status and the problem that end a connection on which only this is sent."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        async with asyncio.timeout(PATIENCE_S):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            raw = await reader.read()
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    if not raw:
        return 0, {}
    head, _, body = raw.partition(b"\r\n\r\n")
    assert b"content-security-policy: default-src 'none'" in head
    assert b"connection: close" in head
    return int(head.split()[1]), json.loads(body)


@pytest.mark.parametrize(
    ("request_bytes", "status", "words"),
    [
        (GET % (b"x" * 1100, b""), 414, "1024 bytes"),
        (GET % (b"", b"a: b\r\n" * 30), 431, "20 fields"),
        (GET % (b"", b"a: " + b"b" * 5000 + b"\r\n"), 431, "4096 bytes"),
        (b"GET / HTTP/1.1\r\nhost: x\r\na: " + b"b" * 6000, 431, "4096 bytes"),  # no end in sight
        (b"GET /" + b"x" * 6000, 431, "4096 bytes"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 400, "no HTTP request"),
        (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n"
         b"\r\n0\r\n\r\n", 400, "no HTTP request"),
        (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\na",
         400, "no HTTP request"),
        (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n", 400, "no HTTP request"),
    ],
)  # fmt: skip
async def test_what_is_too_large_or_no_http_is_refused_with_a_problem(
    request_bytes: bytes, status: int, words: str
) -> None:
    async with serving() as address:
        answered, problem = await answer_to(address, request_bytes)
    assert answered == status
    assert words in problem["detail"]


async def test_a_slow_header_and_a_slow_body_are_ended() -> None:
    """A few bytes a minute on many connections would use up the server's open files."""
    async with serving() as address:
        slow_head = answer_to(address, b"GET / HTTP/1.1\r\nho")
        no_body = answer_to(address, b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n")
        part = answer_to(address, b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nab")
        second = answer_to(
            address, GET % (b"", b"") + b"GET / HTTP/1.1\r\nho"
        )  # a whole request before it
        unused = answer_to(address)
        answers = await asyncio.gather(slow_head, no_body, part, unused)
        assert [status for status, _ in answers] == [408, 408, 408, 0]
        with pytest.raises((AssertionError, json.JSONDecodeError)):
            await second  # the first answer stands before; what counts is that it came to an end


async def test_a_large_body_in_time_passes_whatever_its_header_says() -> None:
    async with serving() as address:
        body = b"x" * 3_000_000
        reader, writer = await asyncio.open_connection(*address)
        for _ in range(3):  # on one connection
            writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body))
            writer.write(body)
            async with asyncio.timeout(PATIENCE_S):
                await writer.drain()
                head = await reader.readuntil(b"\r\n\r\n")
                assert b" 200 " in head
                await reader.readuntil(b"0\r\n\r\n")
        writer.close()


async def test_a_client_that_reads_nothing_is_cut_off() -> None:
    async with serving() as address:
        reader, writer = await asyncio.open_connection(*address, limit=1024)
        writer.write(GET % (b"big", b""))
        await writer.drain()
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.sleep(1.0)  # the wait itself is the fault under test
            read = 0
            with contextlib.suppress(ConnectionError):
                while piece := await reader.read(1 << 20):
                    read += len(piece)
        writer.close()
    assert read < BIG


async def test_one_connection_too_many_is_told_so_and_the_others_go_on() -> None:
    async with serving(ConnectionLimits(most=3)) as address:
        held = [await asyncio.open_connection(*address) for _ in range(3)]
        for _, writer in held:
            writer.write(GET % (b"", b""))
        for reader, _ in held:
            assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        status, problem = await answer_to(address, GET % (b"", b""))
        assert status == 503
        assert "too many connections" in problem["detail"]
        for _, writer in held:
            writer.close()
            await writer.wait_closed()
        async with asyncio.timeout(PATIENCE_S):
            while True:
                reader, writer = await asyncio.open_connection(*address)
                writer.write(GET % (b"", b"connection: close\r\n"))
                answer = await reader.read()
                writer.close()
                if b" 200 " in answer:
                    break


def test_one_address_cannot_have_all_connections_but_a_proxy_can() -> None:
    limits = ConnectionLimits(most=100, most_of_one_address=2)
    counts = Connections(limits, trusted={"10.0.0.9"})
    assert [counts.opened("10.0.0.1") for _ in range(3)] == [True, True, False]
    assert all(counts.opened("10.0.0.9") for _ in range(10))
    assert all(counts.opened("127.0.0.1") for _ in range(10))
    counts.closed("10.0.0.1")
    counts.closed("10.0.0.1")
    assert counts.opened("10.0.0.1")
