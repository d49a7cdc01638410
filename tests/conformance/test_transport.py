"""One suite for both transports, on both event loops: what an exchange must tell, and when.

DESIGN section 4 ("The wire"); traps 35, 43, 44, 48, 49.
"""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trustme
from silent_listener import silent_listener

from headway.core.clock import monotonic_ns
from headway.core.errors import ConfigError
from headway.wire.exchange import Exchange, Timeouts, Transport, WireRequest
from headway.wire.options import TransportOptions
from headway.wire.origin import parse_origin
from headway.wire.tls import TlsOptions
from headway.wire.transport import open_transport

HEADERS = {"Content-Type": "application/json", "X-Test": "yes"}
ASK = WireRequest("POST", "/v1/ask", HEADERS, b'{"a":1}')
QUICK = Timeouts(connect_s=5, total_s=10)

Opened = Callable[..., Awaitable[Transport]]


@pytest.fixture(params=["fast", "aiohttp"])
async def opened(request: pytest.FixtureRequest) -> AsyncIterator[Opened]:
    """A factory of started transports: `await opened(url, max_connections=1)`."""
    transports: list[Transport] = []

    async def start(url: str, **options: Any) -> Transport:
        transport = open_transport(
            request.param, TransportOptions(origin=parse_origin(url), **options)
        )
        await transport.startup()
        transports.append(transport)
        return transport

    yield start
    for transport in transports:
        await transport.shutdown()
        await transport.shutdown()


async def send(
    transport: Transport, request: WireRequest = ASK, timeouts: Timeouts = QUICK, **given: Any
) -> Exchange:
    exchange = Exchange(**given)
    await transport.exchange(request, exchange, timeouts)
    return exchange


# --- whole replies -------------------------------------------------------------------------------


async def test_a_reply_is_read_whole_and_stamped_in_order(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    """Trap 44: connecting is timed apart from the request's own times."""
    server = await scripted([[play.whole(b"hello", headers="X-Kind: Plain\r\n")]])
    before_ns = monotonic_ns()
    exchange = await send(await opened(server.url))
    assert exchange.failure is None
    assert (exchange.status, exchange.body, exchange.body_bytes) == (200, b"hello", 5)
    assert exchange.headers["x-kind"] == "Plain"
    assert not exchange.reused
    assert not exchange.resent
    assert exchange.connect_ns is not None
    assert exchange.connect_ns > 0
    assert exchange.tls_ns is None
    assert exchange.sent_ns is not None
    assert exchange.first_byte_ns is not None
    assert exchange.done_ns is not None
    assert exchange.sent_ns - before_ns >= exchange.connect_ns
    assert exchange.sent_ns <= exchange.first_byte_ns <= exchange.reads[0][0] <= exchange.done_ns


async def test_the_request_arrives_as_given_and_with_nothing_more(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    server = await scripted([[play.whole(b"")]])
    await send(await opened(server.url))
    (head, body), *_ = server.requests
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /v1/ask HTTP/1.1"
    fields = {line.partition(": ")[0].lower(): line.partition(": ")[2] for line in lines[1:-2]}
    host = server.url.removeprefix("http://")
    assert fields == {
        "host": host,
        "content-type": "application/json",
        "x-test": "yes",
        "content-length": "7",
    }
    assert body == b'{"a":1}'


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "OPTIONS"])
async def test_any_method_can_be_sent(
    scripted: Any, play: SimpleNamespace, opened: Opened, method: str
) -> None:
    """L9: any HTTP request."""
    server = await scripted([[play.whole(b"ok")]])
    exchange = await send(await opened(server.url), WireRequest(method, "/x?y=%20", {}))
    assert (exchange.failure, exchange.body) == (None, b"ok")
    assert server.requests[0][0].startswith(f"{method} /x?y=%20 HTTP/1.1\r\n".encode())


async def test_a_head_request_ends_with_the_reply_s_head(scripted: Any, opened: Opened) -> None:
    server = await scripted([[b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"]])
    exchange = await send(await opened(server.url), WireRequest("HEAD", "/", {}))
    assert (exchange.failure, exchange.status, exchange.body) == (None, 200, b"")
    assert exchange.done_ns is not None


async def test_replies_without_a_body_end_at_once(scripted: Any, opened: Opened) -> None:
    reply = b"HTTP/1.1 204 No Content\r\n\r\n"
    server = await scripted([[reply], [reply]])
    transport = await opened(server.url)
    for _ in range(2):
        exchange = await send(transport)
        assert (exchange.failure, exchange.status, exchange.body) == (None, 204, b"")


async def test_a_body_without_a_length_ends_with_the_connection(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    server = await scripted([[b"HTTP/1.1 200 OK\r\n\r\npart one, ", b"part two", play.close]])
    exchange = await send(await opened(server.url))
    assert (exchange.failure, exchange.body) == (None, b"part one, part two")
    assert exchange.done_ns is not None


async def test_an_interim_100_is_skipped(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    server = await scripted(
        [[interim, interim, play.whole(b"now")], [interim + play.whole(b"together")]]
    )
    transport = await opened(server.url)
    first, second = await send(transport), await send(transport)
    assert (first.status, first.body, first.failure) == (200, b"now", None)
    assert (second.status, second.body, second.reused) == (200, b"together", True)


async def test_an_error_reply_keeps_status_headers_and_body(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    """Trap 48: the body of the 400 is what tells what is wrong."""
    server = await scripted([[play.whole(b'{"error":"no"}', "429 Slow", "Retry-After: 7\r\n")]])
    exchange = await send(await opened(server.url))
    assert exchange.failure is None
    assert (exchange.status, exchange.headers["retry-after"]) == (429, "7")
    assert exchange.body == b'{"error":"no"}'


async def test_a_redirect_is_reported_and_not_followed(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    server = await scripted(
        [[play.whole(b"", "307 Temporary Redirect", "Location: http://other.invalid/\r\n")]]
    )
    exchange = await send(await opened(server.url))
    assert (exchange.status, exchange.headers["location"]) == (307, "http://other.invalid/")
    assert len(server.requests) == 1


# --- bodies in pieces ----------------------------------------------------------------------------


async def test_chunks_cut_at_any_byte_give_the_same_body(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    text = 'data: {"text":"żółć 😀"}\r\n\r\n: comment\n\ndata: [DONE]\n\n'.encode()
    pieces = [text[:1], text[1:19], text[19:21], text[21:]]
    raw = play.chunked(*pieces)
    one_by_one = [raw[i : i + 1] for i in range(len(raw))]
    server = await scripted([[raw], one_by_one, [raw[:70], raw[70:]]])
    transport = await opened(server.url)
    for _ in range(3):
        exchange = await send(transport)
        assert exchange.failure is None
        assert exchange.body == text
        assert exchange.body_bytes == len(text)
    assert server.connections == 1


async def test_reads_that_come_apart_have_times_apart(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    """Each read has the time at which it came, in order; the watch sees the same reads."""
    go_on = asyncio.Event()
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    server = await scripted([[head + b"3\r\none\r\n", go_on, b"3\r\ntwo\r\n0\r\n\r\n"]])
    seen: list[tuple[int, bytes]] = []

    def watch(time_ns: int, piece: bytes) -> bool:
        seen.append((time_ns, piece))
        released_ns.append(monotonic_ns())
        go_on.set()
        return False

    released_ns: list[int] = []
    exchange = await send(
        await opened(server.url), timeouts=Timeouts(first_token_s=10, total_s=10), watch=watch
    )
    assert [piece for _, piece in exchange.reads] == [b"one", b"two"]
    assert seen == exchange.reads
    assert exchange.reads[0][0] <= released_ns[0] <= exchange.reads[1][0]


async def test_a_gzip_body_is_decompressed_read_by_read(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    packed = gzip.compress(b"data: 1\n\n" * 1000)
    headers = "Content-Encoding: gzip\r\n"
    server = await scripted(
        [
            [play.whole(packed, headers=headers)],
            [play.chunked(packed[:20], packed[20:], headers=headers)],
            [play.whole(b"plain")],
        ]
    )
    transport = await opened(server.url)
    for _ in range(2):
        exchange = await send(transport)
        assert (exchange.failure, exchange.body) == (None, b"data: 1\n\n" * 1000)
        assert exchange.body_bytes == 9000
    assert (await send(transport)).body == b"plain"


async def test_a_broken_gzip_body_is_a_protocol_failure(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    server = await scripted([[play.whole(b"no gzip", headers="Content-Encoding: gzip\r\n")]])
    exchange = await send(await opened(server.url))
    assert exchange.failure is not None
    assert exchange.failure.category == "protocol"
    assert "compressed" in exchange.failure.message


@pytest.mark.parametrize("is_packed", [False, True])
async def test_a_body_over_its_bound_is_a_clear_failure(
    scripted: Any, play: SimpleNamespace, opened: Opened, is_packed: bool
) -> None:
    """Memory is bounded whatever a server sends, also when it sends it compressed."""
    body = b"x" * 400_000
    raw = play.whole(body)
    if is_packed:
        raw = play.whole(gzip.compress(body), headers="Content-Encoding: gzip\r\n")
    server = await scripted([[raw, play.silence]])
    exchange = await send(await opened(server.url, max_body_bytes=100_000))
    assert exchange.failure is not None
    assert exchange.failure.category == "protocol"
    assert "100000 bytes" in exchange.failure.message
    assert exchange.done_ns is None


async def test_a_large_request_body_arrives_whole(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    """The socket's buffer is smaller than this: the rest must follow in order."""
    body = bytes(range(256)) * 40_000
    server = await scripted([[play.whole(b"got it")], [play.whole(b"again")]])
    transport = await opened(server.url)
    for _ in range(2):
        exchange = await send(transport, WireRequest("POST", "/", {}, body))
        assert exchange.failure is None
    assert [len(received) for _, received in server.requests] == [len(body)] * 2
    assert server.requests[0][1] == body


# --- what goes wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_connection_that_ends_mid_body_leaves_what_was_read(
    scripted: Any, play: SimpleNamespace, opened: Opened, how: str
) -> None:
    """Trap 35: the part that came is kept."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
    seen = asyncio.Event()
    server = await scripted([[head + b"begun", seen, getattr(play, how)]])

    def watch(time_ns: int, piece: bytes) -> bool:
        seen.set()
        return True

    exchange = await send(
        await opened(server.url), timeouts=Timeouts(first_token_s=10, total_s=10), watch=watch
    )
    assert exchange.failure is not None
    assert exchange.failure.category == "disconnected"
    assert ("closed" if how == "close" else "reset") in exchange.failure.message
    assert (exchange.status, exchange.body, exchange.done_ns) == (200, b"begun", None)
    assert not exchange.resent


async def test_a_chunked_body_without_its_end_is_disconnected(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    server = await scripted([[head + b"5\r\nhello\r\n", play.close]])
    exchange = await send(await opened(server.url))
    assert exchange.failure is not None
    assert exchange.failure.category == "disconnected"


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
    ],
    ids=["not http", "bad length", "bad chunk"],
)
async def test_what_is_not_http_is_a_protocol_failure(
    scripted: Any, play: SimpleNamespace, opened: Opened, raw: bytes
) -> None:
    server = await scripted([[raw, play.silence]])
    exchange = await send(await opened(server.url))
    assert exchange.failure is not None
    assert exchange.failure.category == "protocol"
    assert "not valid HTTP/1.1" in exchange.failure.message


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_kept_connection_that_was_closed_is_sent_again_once(
    scripted: Any, play: SimpleNamespace, opened: Opened, method: str
) -> None:
    """The server closes after it has read the second request, before a byte of a reply.

    GET too: there aiohttp sends again by itself, which must not go unrecorded.
    """
    server = await scripted([[play.whole(b"one")], [play.close]], [[play.whole(b"two")]])
    transport = await opened(server.url)
    request = WireRequest(method, "/x", HEADERS, b"{}" if method == "POST" else b"")
    first, second = await send(transport, request), await send(transport, request)
    assert (first.body, first.resent) == (b"one", False)
    assert second.failure is None
    assert (second.body, second.resent, second.reused) == (b"two", True, False)
    assert len(server.requests) == 3
    assert second.sent_ns is not None
    assert second.first_byte_ns is not None
    assert second.first_byte_ns >= second.sent_ns


async def test_a_request_is_sent_again_once_and_no_more(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    server = await scripted([[play.whole(b"one")], [play.close]], [[play.close]])
    transport = await opened(server.url)
    await send(transport)
    exchange = await send(transport)
    assert exchange.failure is not None
    assert exchange.failure.category == "disconnected"
    assert exchange.resent
    assert len(server.requests) == 3


async def test_a_new_connection_that_is_closed_is_the_target_s_answer(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    server = await scripted([[play.close]], [[play.whole(b"never asked for")]])
    exchange = await send(await opened(server.url))
    assert exchange.failure is not None
    assert exchange.failure.category == "disconnected"
    assert not exchange.resent
    assert len(server.requests) == 1


async def test_a_connection_is_not_used_after_a_close_header(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    reply = play.whole(b"bye", headers="Connection: close\r\n")
    server = await scripted([[reply, play.silence]])
    transport = await opened(server.url)
    for _ in range(2):
        exchange = await send(transport)
        assert (exchange.body, exchange.reused, exchange.resent) == (b"bye", False, False)
    assert server.connections == 2


async def test_bytes_nobody_asked_for_are_not_the_next_reply(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    server = await scripted(
        [[play.whole(b"mine") + play.whole(b"surplus"), play.silence]], [[play.whole(b"fresh")]]
    )
    transport = await opened(server.url)
    assert (await send(transport)).body == b"mine"
    await asyncio.wait_for(server.client_left.wait(), 5)
    assert (await send(transport)).body == b"fresh"


async def test_nothing_listens(opened: Opened) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        exchange = await send(await opened(url))
    assert exchange.failure is not None
    assert exchange.failure.category == "connect"
    assert exchange.failure.message == f"connection refused: nothing listens at {url}"
    assert exchange.sent_ns is None


async def test_a_name_that_does_not_resolve(opened: Opened) -> None:
    exchange = await send(await opened("http://no-such-host.invalid:8000"))
    assert exchange.failure is not None
    assert exchange.failure.category == "connect"
    assert exchange.failure.message == "the name no-such-host.invalid does not resolve"


# --- deadlines and cancelling --------------------------------------------------------------------


async def test_the_total_deadline_ends_a_silent_exchange(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    server = await scripted([[play.silence]])
    transport = await opened(server.url)
    exchange = await send(transport, timeouts=Timeouts(total_s=0.5))
    assert exchange.failure is not None
    assert exchange.failure.category == "timeout"
    assert exchange.failure.message == "no whole reply within 0.5 s (total)"
    assert exchange.sent_ns is not None
    await asyncio.wait_for(server.client_left.wait(), 5)


async def test_the_first_token_deadline_waits_for_what_the_watch_says(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    """A body that carries no token yet does not count."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    server = await scripted([[head + b"4\r\nrole\r\n", play.silence]])
    transport = await opened(server.url)
    limits = Timeouts(first_token_s=0.5, total_s=10)
    exchange = await send(transport, timeouts=limits, watch=lambda _, piece: b"token" in piece)
    assert exchange.failure is not None
    assert exchange.failure.message == "no first token within 0.5 s"
    assert exchange.body == b"role"


async def test_the_first_token_deadline_is_gone_once_a_token_came(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    server = await scripted([[head + b"5\r\ntoken\r\n", play.silence]])
    transport = await opened(server.url)
    limits = Timeouts(first_token_s=0.5, total_s=0.7)
    exchange = await send(transport, timeouts=limits, watch=lambda _, piece: b"token" in piece)
    assert exchange.failure is not None
    assert exchange.failure.message == "no whole reply within 0.7 s (total)"


async def test_the_idle_deadline_counts_from_the_last_read(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    server = await scripted([[head + b"3\r\none\r\n", play.silence]])
    transport = await opened(server.url)
    exchange = await send(transport, timeouts=Timeouts(idle_s=0.5, total_s=10))
    assert exchange.failure is not None
    assert exchange.failure.message == "nothing more came for 0.5 s (idle)"
    assert exchange.body == b"one"


async def test_the_connect_deadline(opened: Opened) -> None:
    with silent_listener() as port:
        transport = await opened(f"http://127.0.0.1:{port}")
        exchange = await send(transport, timeouts=Timeouts(connect_s=0.2, total_s=10))
    assert exchange.failure is not None
    assert exchange.failure.category == "timeout"
    assert exchange.failure.message == "no connection within 0.2 s"
    assert exchange.sent_ns is None


async def test_deadlines_of_one_exchange_do_not_reach_into_the_next(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    """One timer serves a connection's exchanges; an early one must not end a later one."""
    go_on = asyncio.Event()
    server = await scripted([[play.whole(b"one")], [go_on, play.whole(b"two")]])
    transport = await opened(server.url)
    await send(transport, timeouts=Timeouts(total_s=0.5))
    second = asyncio.ensure_future(send(transport, timeouts=Timeouts(total_s=10)))
    await asyncio.sleep(0.6)  # past the first one's deadline
    go_on.set()
    exchange = await second
    assert (exchange.failure, exchange.body, exchange.reused) == (None, b"two", True)


async def test_cancelling_keeps_what_was_read_and_closes_the_connection(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    """Trap 35: partial responses were lost."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    server = await scripted([[head + b"5\r\nbegun\r\n", play.silence]], [[play.whole(b"fresh")]])
    transport = await opened(server.url)
    came = asyncio.Event()

    def watch(time_ns: int, piece: bytes) -> bool:
        came.set()
        return True

    exchange = Exchange(watch=watch)
    limits = Timeouts(first_token_s=10, total_s=10)
    task = asyncio.ensure_future(transport.exchange(ASK, exchange, limits))
    await asyncio.wait_for(came.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert exchange.body == b"begun"
    assert exchange.done_ns is None
    await asyncio.wait_for(server.client_left.wait(), 5)
    assert (await send(transport)).body == b"fresh"


async def test_shutdown_ends_what_is_under_way(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    server = await scripted([[play.silence]])
    transport = await opened(server.url)
    task = asyncio.ensure_future(send(transport))
    await asyncio.wait_for(server.request_came.wait(), 5)
    await transport.shutdown()
    exchange = await asyncio.wait_for(task, 5)
    assert exchange.failure is not None
    assert exchange.failure.category == "disconnected"
    await asyncio.wait_for(server.client_left.wait(), 5)


# --- the pool ------------------------------------------------------------------------------------


async def test_connections_are_kept_and_the_last_used_comes_first(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    """Trap 43: as many connections as requests in flight, and no new one for each request."""
    together = asyncio.Event()
    reply = [together, play.whole(b"ok")]
    server = await scripted([reply] * 20)
    transport = await opened(server.url)
    tasks = [asyncio.ensure_future(send(transport)) for _ in range(8)]
    await server.wait_requests(8)
    together.set()
    assert {exchange.reused for exchange in await asyncio.gather(*tasks)} == {False}
    for _ in range(10):
        assert (await send(transport)).reused
    assert server.connections == 8


async def test_a_bounded_pool_makes_requests_wait_and_says_how_long(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    """Trap 44: the wait for a connection is told apart, and is not in the service time."""
    go_on = asyncio.Event()
    server = await scripted([[go_on, play.whole(b"one")], [play.whole(b"two")]])
    transport = await opened(server.url, max_connections=1)
    first = asyncio.ensure_future(send(transport))
    await asyncio.wait_for(server.request_came.wait(), 5)
    second = asyncio.ensure_future(send(transport))
    for _ in range(20):  # Turns of the loop, not a time: after these it waits in line.
        await asyncio.sleep(0)
    waits_since_ns = monotonic_ns()
    await asyncio.sleep(0.05)
    assert len(server.requests) == 1
    released_ns = monotonic_ns()
    go_on.set()
    one, two = await first, await second
    assert (one.body, one.pool_wait_ns) == (b"one", None)
    assert (two.body, two.reused) == (b"two", True)
    assert two.pool_wait_ns is not None
    assert two.pool_wait_ns >= released_ns - waits_since_ns
    assert two.sent_ns is not None
    assert two.sent_ns >= released_ns
    assert server.connections == 1


async def test_a_place_in_a_bounded_pool_survives_failures_and_cancels(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    server = await scripted(
        [[play.close]], [[play.silence]], [[play.silence]], [[play.whole(b"ok")]]
    )
    transport = await opened(server.url, max_connections=1)
    assert (await send(transport)).failure is not None
    assert (await send(transport, timeouts=Timeouts(total_s=0.05))).failure is not None
    server.request_came.clear()
    holder = asyncio.ensure_future(send(transport))
    await asyncio.wait_for(server.request_came.wait(), 5)
    waiting = asyncio.ensure_future(send(transport))
    await asyncio.sleep(0)
    waiting.cancel()
    holder.cancel()
    await asyncio.gather(holder, waiting, return_exceptions=True)
    assert (await send(transport)).body == b"ok"


# --- TLS, IPv6, Unix sockets, proxies ------------------------------------------------------------


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def server_context(authority: trustme.CA, host: str = "127.0.0.1") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host).configure_cert(context)
    return context


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


async def test_https_with_the_authority_s_file(
    scripted: Any, play: SimpleNamespace, opened: Opened, authority: trustme.CA, ca_file: str
) -> None:
    server = await scripted(
        [[play.whole(b"safe")], [play.chunked(b"still", b" safe")]], tls=server_context(authority)
    )
    transport = await opened(server.url, tls=TlsOptions(ca_file=ca_file))
    first, second = await send(transport), await send(transport)
    assert (first.failure, first.body, first.reused) == (None, b"safe", False)
    assert (second.failure, second.body, second.reused) == (None, b"still safe", True)
    assert first.connect_ns is not None
    assert second.connect_ns is None
    assert second.tls_ns is None


async def test_https_without_it_is_refused(
    scripted: Any, play: SimpleNamespace, opened: Opened, authority: trustme.CA
) -> None:
    """Trap 49: TLS verification is on unless switched off."""
    server = await scripted([[play.whole(b"unsafe")]], tls=server_context(authority))
    exchange = await send(await opened(server.url))
    assert exchange.failure is not None
    assert exchange.failure.category == "tls"
    assert "not trusted" in exchange.failure.message
    assert "ca_file" in exchange.failure.message
    assert server.requests == []


async def test_https_for_another_name_is_refused(
    scripted: Any, play: SimpleNamespace, opened: Opened, authority: trustme.CA, ca_file: str
) -> None:
    server = await scripted([[play.whole(b"x")]], tls=server_context(authority, "other.example"))
    exchange = await send(await opened(server.url, tls=TlsOptions(ca_file=ca_file)))
    assert exchange.failure is not None
    assert exchange.failure.category == "tls"
    assert "not valid for" in exchange.failure.message


async def test_https_unverified_when_switched_off_knowingly(
    scripted: Any, play: SimpleNamespace, opened: Opened, authority: trustme.CA
) -> None:
    server = await scripted([[play.whole(b"ok")]], tls=server_context(authority))
    exchange = await send(await opened(server.url, tls=TlsOptions(verify=False)))
    assert (exchange.failure, exchange.body) == (None, b"ok")


async def test_a_client_certificate_is_shown(
    scripted: Any,
    play: SimpleNamespace,
    opened: Opened,
    authority: trustme.CA,
    ca_file: str,
    tmp_path: Path,
) -> None:
    context = server_context(authority)
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    server = await scripted([[play.whole(b"known")]], tls=context)
    client = authority.issue_cert("client@example.org")
    cert, key = tmp_path / "client.pem", tmp_path / "client.key"
    client.cert_chain_pems[0].write_to_path(str(cert))
    client.private_key_pem.write_to_path(str(key))
    shown = TlsOptions(ca_file=ca_file, client_cert=str(cert), client_key=str(key))
    exchange = await send(await opened(server.url, tls=shown))
    assert (exchange.failure, exchange.body) == (None, b"known")
    assert server.peer_certificates[0]
    refused = await send(await opened(server.url, tls=TlsOptions(ca_file=ca_file)))
    assert refused.failure is not None
    assert refused.failure.category in ("tls", "disconnected")


async def test_tls_towards_a_plain_server_says_so(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    server = await scripted([[play.silence]])
    exchange = await send(
        await opened(server.url.replace("http:", "https:")), timeouts=Timeouts(connect_s=0.3)
    )
    assert exchange.failure is not None
    assert exchange.failure.category in ("tls", "timeout")


async def test_ipv6(scripted: Any, play: SimpleNamespace, opened: Opened) -> None:
    if not socket.has_ipv6:
        pytest.skip("this host has no IPv6")
    server = await scripted([[play.whole(b"six")]], host="::1")
    exchange = await send(await opened(server.url))
    assert (exchange.failure, exchange.body) == (None, b"six")
    assert b"\r\nHost: [::1]:" in server.requests[0][0]


async def test_a_name_with_two_addresses_of_which_one_listens(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    """Happy eyeballs: `localhost` may be ::1 first, and the server be on 127.0.0.1 only."""
    server = await scripted([[play.whole(b"found")]])
    exchange = await send(await opened(server.url.replace("127.0.0.1", "localhost")))
    assert (exchange.failure, exchange.body) == (None, b"found")


async def test_unix_sockets(
    scripted: Any, play: SimpleNamespace, opened: Opened, tmp_path: Path
) -> None:
    path = tmp_path / "inference.sock"
    server = await scripted([[play.whole(b"near")], [play.whole(b"again")]], uds=path)
    transport = await opened(server.url)
    first, second = await send(transport), await send(transport)
    assert (first.failure, first.body) == (None, b"near")
    assert (second.body, second.reused) == (b"again", True)
    assert b"\r\nHost: localhost\r\n" in server.requests[0][0]


async def test_a_unix_socket_that_is_not_there(opened: Opened, tmp_path: Path) -> None:
    exchange = await send(await opened(f"unix://{tmp_path}/none.sock"))
    assert exchange.failure is not None
    assert exchange.failure.category == "connect"
    assert "none.sock" in exchange.failure.message


async def test_files_that_cannot_be_used_are_refused_at_startup(
    opened: Opened, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="cannot read the CA file"):
        await opened("https://127.0.0.1:1", tls=TlsOptions(ca_file=str(tmp_path / "none.pem")))
    (tmp_path / "bad.pem").write_text("nothing")
    with pytest.raises(ConfigError, match="holds no PEM"):
        await opened("https://127.0.0.1:1", tls=TlsOptions(client_cert=str(tmp_path / "bad.pem")))


async def test_a_header_that_would_break_the_framing_is_refused(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    server = await scripted([[play.whole(b"")]])
    transport = await opened(server.url)
    for headers in ({"X": "a\r\nY: b"}, {"Content-Length": "3"}, {"Bad Name": "x"}):
        with pytest.raises(ConfigError):
            await send(transport, WireRequest("GET", "/", headers))
    assert server.requests == []
