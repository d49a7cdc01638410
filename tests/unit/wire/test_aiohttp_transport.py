"""The aiohttp transport: what its library says of a failure, and what we make of that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from headway.core.errors import ConfigError, InternalError
from headway.wire.aiohttp_transport import AiohttpTransport
from headway.wire.exchange import Exchange, Timeouts, WireRequest
from headway.wire.options import TransportOptions
from headway.wire.origin import parse_origin

DEADLINE_S = 20.0
LIMITS = Timeouts(connect_s=DEADLINE_S, total_s=DEADLINE_S)
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

Open = Callable[..., Awaitable[AiohttpTransport]]


@pytest.fixture
async def open_to() -> AsyncIterator[Open]:
    opened: list[AiohttpTransport] = []

    async def start(url: str, **options: Any) -> AiohttpTransport:
        transport = AiohttpTransport(TransportOptions(origin=parse_origin(url), **options))
        opened.append(transport)
        await transport.startup()
        return transport

    yield start
    for transport in opened:
        await transport.shutdown()


async def send(transport: AiohttpTransport, limits: Timeouts = LIMITS, **given: Any) -> Exchange:
    exchange = Exchange(**given)
    request = WireRequest("POST", "/", {}, b"body")
    await asyncio.wait_for(transport.exchange(request, exchange, limits), DEADLINE_S)
    return exchange


async def test_before_its_start_it_can_be_shut_down_and_sends_nothing() -> None:
    transport = AiohttpTransport(TransportOptions(origin=parse_origin("http://127.0.0.1:1")))
    with pytest.raises(InternalError, match="before startup"):
        await send(transport)
    await transport.shutdown()


async def test_what_is_sent_after_the_shutdown_is_a_failure_that_says_so(open_to: Open) -> None:
    """A slot may be about to send while another part of the worker shuts the transport down."""
    transport = await open_to("http://127.0.0.1:1")
    await transport.shutdown()
    exchange = await send(transport)
    assert exchange.failure is not None
    assert exchange.failure.category == "disconnected"
    assert exchange.sent_ns is None


async def test_a_malformed_chunk_is_never_taken_for_the_end_of_a_reply(
    serve: Any, open_to: Open
) -> None:
    """The library may not tell of one that comes later than the head; then the deadline does."""
    came = asyncio.Event()

    async def handle(number: int, reader: Any, writer: Any) -> None:
        await reader.readuntil(b"body")
        writer.write(HEAD + b"5\r\nbegun\r\n")
        await came.wait()
        writer.write(b"zz\r\nhello\r\n0\r\n\r\n")
        await reader.read()

    def watch(time_ns: int, piece: bytes) -> bool:
        came.set()
        return True

    limits = Timeouts(first_token_s=DEADLINE_S, total_s=2.0)
    exchange = await send(await open_to(await serve(handle)), limits, watch=watch)
    assert exchange.failure is not None
    assert exchange.failure.category in ("protocol", "timeout")
    assert exchange.body == b"begun"
    assert exchange.done_ns is None


async def test_a_tls_handshake_with_a_plain_server_is_named_as_that(
    serve: Any, open_to: Open
) -> None:
    async def handle(number: int, reader: Any, writer: Any) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read()

    url = (await serve(handle)).replace("http://", "https://")
    exchange = await send(await open_to(url))
    assert exchange.failure is not None
    assert exchange.failure.category == "tls"
    assert exchange.failure.message.startswith("the TLS handshake failed (")
    assert exchange.sent_ns is None


async def test_a_unix_socket_behind_a_proxy_is_refused(open_to: Open) -> None:
    with pytest.raises(ConfigError, match="Unix socket is not reached through a proxy"):
        await open_to("unix:///tmp/target.sock", proxy="http://127.0.0.1:1")
