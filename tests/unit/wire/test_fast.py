"""The fast transport where its pool is empty, its target is gone, or its caller gives up."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from silent_listener import silent_listener

from headway.core.errors import ConfigError, InternalError
from headway.wire.exchange import Exchange, Timeouts, WireRequest
from headway.wire.fast import FastTransport
from headway.wire.options import TransportOptions
from headway.wire.origin import parse_origin

DEADLINE_S = 20.0
LIMITS = Timeouts(connect_s=DEADLINE_S, total_s=DEADLINE_S)
ASK = WireRequest("GET", "/", {})
REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

Open = Callable[..., Awaitable[FastTransport]]


@pytest.fixture
async def open_to() -> AsyncIterator[Open]:
    opened: list[FastTransport] = []

    async def start(url: str, **options: Any) -> FastTransport:
        transport = FastTransport(TransportOptions(origin=parse_origin(url), **options))
        await transport.startup()
        opened.append(transport)
        return transport

    yield start
    for transport in opened:
        await transport.shutdown()


async def send(transport: FastTransport, timeouts: Timeouts = LIMITS) -> Exchange:
    exchange = Exchange()
    await asyncio.wait_for(transport.exchange(ASK, exchange, timeouts), DEADLINE_S)
    return exchange


async def in_line(transport: FastTransport) -> None:
    """Until a request waits for a connection."""
    async with asyncio.timeout(DEADLINE_S):
        while not transport._pool._waiting:  # noqa: ASYNC110  the pool tells nobody
            await asyncio.sleep(0)


async def test_a_proxy_is_refused_with_what_to_take_instead(open_to: Open) -> None:
    with pytest.raises(ConfigError, match="use the aiohttp transport"):
        await open_to("http://127.0.0.1:1", proxy="http://127.0.0.1:2")


async def test_sending_before_the_start_is_a_bug_that_is_named() -> None:
    """And keeps no place of the pool: the second of two would wait for it until its deadline."""
    origin = parse_origin("http://127.0.0.1:1")
    transport = FastTransport(TransportOptions(origin=origin, max_connections=1))
    for _ in range(2):
        with pytest.raises(InternalError, match="before startup"):
            await send(transport, Timeouts(connect_s=0.1, total_s=0.1))


async def test_bytes_that_come_while_nothing_was_asked_close_the_connection(
    serve: Any, open_to: Open
) -> None:
    """Taken for a reply, they would answer the next request."""
    go_on, client_left = asyncio.Event(), asyncio.Event()

    async def handle(number: int, reader: Any, writer: Any) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(REPLY)
        if number == 0:
            await go_on.wait()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad")
            with_end = await reader.read()
            assert with_end == b""
            client_left.set()

    transport = await open_to(await serve(handle))
    first = await send(transport)
    go_on.set()
    await asyncio.wait_for(client_left.wait(), DEADLINE_S)
    second = await send(transport)
    assert (first.body, second.body) == (b"ok", b"ok")
    assert (second.reused, second.resent) == (False, False)


async def test_a_request_sent_again_waits_in_line_where_its_place_was_given_away(
    serve: Any, open_to: Open
) -> None:
    """One place: the next in line takes it before the request whose connection died."""
    asked, close = asyncio.Event(), asyncio.Event()

    async def handle(number: int, reader: Any, writer: Any) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(REPLY)
        await reader.readuntil(b"\r\n\r\n")
        if number == 0:
            asked.set()
            await close.wait()
            return
        writer.write(REPLY)
        await reader.read()

    transport = await open_to(await serve(handle), max_connections=1)
    await send(transport)
    again = asyncio.ensure_future(send(transport))
    await asyncio.wait_for(asked.wait(), DEADLINE_S)
    waiting = asyncio.ensure_future(send(transport))
    await in_line(transport)
    close.set()
    one, other = await again, await waiting
    assert (one.failure, one.body) == (None, b"ok")
    assert (one.resent, one.reused) == (True, True)
    assert one.pool_wait_ns is not None
    assert (other.failure, other.body) == (None, b"ok")
    assert (other.resent, other.reused) == (False, False)
    assert other.connect_ns is not None


async def test_a_request_that_cannot_be_sent_again_tells_why(serve: Any, open_to: Open) -> None:
    """The kept connection is closed, and nothing listens any more."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        loop = asyncio.get_running_loop()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        transport = await open_to(url)
        first = asyncio.ensure_future(send(transport))
        peer, _ = await asyncio.wait_for(loop.sock_accept(listener), DEADLINE_S)
    with peer:
        await loop.sock_recv(peer, 4096)
        await loop.sock_sendall(peer, REPLY)
        assert (await first).body == b"ok"
        second = asyncio.ensure_future(send(transport))
        await asyncio.wait_for(loop.sock_recv(peer, 4096), DEADLINE_S)
    exchange = await second
    assert exchange.resent
    assert not exchange.reused
    assert exchange.failure is not None
    assert exchange.failure.category == "connect"
    assert exchange.failure.message == f"connection refused: nothing listens at {url}"


async def test_a_connection_that_dies_while_it_is_handed_on_is_not_used(
    serve: Any, open_to: Open
) -> None:
    """Between being given to the next in line and being used it may turn out to be closed."""
    asked, answer = asyncio.Event(), asyncio.Event()

    async def handle(number: int, reader: Any, writer: Any) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if number == 0:
            asked.set()
            await answer.wait()
            writer.write(REPLY)
        else:
            writer.write(REPLY)
        await reader.read()

    transport = await open_to(await serve(handle), max_connections=1)
    holding = asyncio.ensure_future(send(transport))
    await asyncio.wait_for(asked.wait(), DEADLINE_S)
    (connection,) = transport._open
    waiting = asyncio.ensure_future(send(transport))
    await in_line(transport)
    # The reply ends the first exchange and hands the connection on, and in the same iteration,
    # before who waits for it goes on, more bytes come.
    connection.data_received(REPLY)
    connection.data_received(b"surplus")
    one, other = await holding, await waiting
    assert (one.failure, one.body) == (None, b"ok")
    assert (other.failure, other.body) == (None, b"ok")
    assert (other.reused, other.resent) == (False, False)
    assert other.connect_ns is not None


async def test_a_caller_that_gives_up_as_the_transport_shuts_down_is_cancelled_and_no_more(
    serve: Any, open_to: Open
) -> None:
    """The end of its exchange comes after it stopped waiting, and before it could say so."""
    asked = asyncio.Event()

    async def handle(number: int, reader: Any, writer: Any) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await reader.read()

    transport = await open_to(await serve(handle))
    exchange = Exchange()
    task = asyncio.ensure_future(transport.exchange(ASK, exchange, LIMITS))
    await asyncio.wait_for(asked.wait(), DEADLINE_S)
    task.cancel()
    await transport.shutdown()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert exchange.failure is not None
    assert exchange.failure.category == "disconnected"
    assert exchange.done_ns is None


async def test_a_total_deadline_nearer_than_the_one_to_connect_is_named(open_to: Open) -> None:
    with silent_listener() as port:
        transport = await open_to(f"http://127.0.0.1:{port}")
        exchange = await send(transport, Timeouts(connect_s=DEADLINE_S, total_s=0.2))
    assert exchange.failure is not None
    assert exchange.failure.category == "timeout"
    assert exchange.failure.message == "no whole reply within 0.2 s (total)"
    assert exchange.sent_ns is None


async def test_a_coding_that_changes_nothing_is_read_as_it_is_and_an_unknown_one_is_named(
    serve: Any, open_to: Open
) -> None:
    codings = [b"identity", b"br"]

    async def handle(number: int, reader: Any, writer: Any) -> None:
        for coding in codings:
            await reader.readuntil(b"\r\n\r\n")
            head = b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\nContent-Length: 2\r\n\r\n" % coding
            writer.write(head + b"ok")
        await reader.read()

    transport = await open_to(await serve(handle))
    plain, packed = await send(transport), await send(transport)
    assert (plain.failure, plain.body) == (None, b"ok")
    assert packed.failure is not None
    assert packed.failure.category == "protocol"
    assert "Content-Encoding br" in packed.failure.message
