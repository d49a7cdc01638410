"""What servers, networks and name services do at the edges, for both transports (issue 6, "Wire").

Addresses that do not answer, addresses to spread over, interim replies of every kind, chunks as
only a few servers write them, and the line between a safe second sending and an unsafe one.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import random
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from silent_listener import silent_listener

from headway.backends.backend import Call, Progress
from headway.backends.registry import create_backend
from headway.backends.spec import OpenAIBackendSpec, TargetSpec
from headway.core.clock import monotonic_ns
from headway.wire.exchange import Exchange, Timeouts, Transport, WireRequest
from headway.wire.options import TransportOptions
from headway.wire.origin import parse_origin
from headway.wire.transport import open_transport

ASK = WireRequest("POST", "/v1/ask", {"Content-Type": "application/json"}, b'{"a":1}')
PATIENT = Timeouts(connect_s=20, total_s=40)
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"

Opened = Callable[..., Awaitable[Transport]]


@pytest.fixture(params=["fast", "aiohttp"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def opened(kind: str) -> AsyncIterator[Opened]:
    """A factory of started transports: `await opened(url, addresses=("127.0.0.1",))`."""
    transports: list[Transport] = []

    async def start(url: str, **options: Any) -> Transport:
        transport = open_transport(
            kind,  # type: ignore[arg-type]
            TransportOptions(origin=parse_origin(url), **options),
        )
        await transport.startup()
        transports.append(transport)
        return transport

    yield start
    for transport in transports:
        await transport.shutdown()


async def send(transport: Transport, request: WireRequest = ASK) -> Exchange:
    exchange = Exchange()
    await transport.exchange(request, exchange, PATIENT)
    return exchange


# --- addresses -----------------------------------------------------------------------------------


async def test_an_address_that_never_answers_does_not_keep_the_next_from_being_tried(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    """Happy eyeballs: a dead first address costs a moment, not the connection."""
    server = await scripted([[play.whole(b"alive")]])
    port = int(server.url.rpartition(":")[2])
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(silent_listener("127.0.0.2", port))
        except OSError:
            pytest.skip("this host has no second loopback address 127.0.0.2")
        transport = await opened(
            f"http://target.invalid:{port}", addresses=("127.0.0.2", "127.0.0.1")
        )
        exchange = await send(transport)
    assert (exchange.failure, exchange.body) == (None, b"alive")


async def test_an_address_that_refuses_does_not_either(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    server = await scripted([[play.whole(b"alive")]])
    port = int(server.url.rpartition(":")[2])
    transport = await opened(f"http://target.invalid:{port}", addresses=("127.0.0.3", "127.0.0.1"))
    exchange = await send(transport)
    assert (exchange.failure, exchange.body) == (None, b"alive")


class ManyAddresses:
    """Listens on every address of the host, and notes to which of them each connection came."""

    def __init__(self) -> None:
        self.addresses: Counter[str] = Counter()
        self.all_came = asyncio.Event()
        self.awaited = 0
        self.port = 0
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "0.0.0.0", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        self.addresses[writer.get_extra_info("sockname")[0]] += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            if self.addresses.total() >= self.awaited:
                self.all_came.set()
            # No request is answered before the last one came: each needs its own connection.
            await self.all_came.wait()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.close()


@pytest.fixture
async def many_addresses() -> AsyncIterator[ManyAddresses]:
    server = ManyAddresses()
    await server.listen()
    yield server
    await server.close()


ADDRESSES = ("127.0.0.1", "127.0.0.2", "127.0.0.3")


async def connect(server: ManyAddresses, transport: Transport, number: int) -> None:
    server.awaited = number
    exchanges = await asyncio.gather(*[send(transport) for _ in range(number)])
    assert [exchange.failure for exchange in exchanges] == [None] * number


async def test_connections_are_spread_over_all_addresses_when_asked(
    many_addresses: ManyAddresses, opened: Opened
) -> None:
    transport = await opened(
        f"http://target.invalid:{many_addresses.port}", addresses=ADDRESSES, spread_addresses=True
    )
    await connect(many_addresses, transport, 9)
    assert set(many_addresses.addresses) == set(ADDRESSES)
    assert max(many_addresses.addresses.values()) <= 4


@pytest.mark.parametrize("kind", ["fast"], indirect=True)
async def test_connections_stay_with_one_address_otherwise(
    many_addresses: ManyAddresses, opened: Opened
) -> None:
    """Only the fast transport can: aiohttp always goes round, as decision 0007 says."""
    transport = await opened(f"http://target.invalid:{many_addresses.port}", addresses=ADDRESSES)
    await connect(many_addresses, transport, 9)
    assert len(many_addresses.addresses) == 1


# --- replies as few servers write them -----------------------------------------------------------


@pytest.mark.parametrize("cut", [False, True], ids=["at once", "byte by byte"])
async def test_interim_replies_of_any_kind_are_skipped(
    scripted: Any, play: SimpleNamespace, opened: Opened, cut: bool
) -> None:
    raw = (
        b"HTTP/1.1 100 Continue\r\n\r\n"
        b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"
        b"HTTP/1.1 102 Processing\r\n\r\n" + play.whole(b"final", headers="X-Final: yes\r\n")
    )
    reply = [raw[i : i + 1] for i in range(len(raw))] if cut else [raw]
    server = await scripted([reply, [play.whole(b"next")]])
    transport = await opened(server.url)
    first, second = await send(transport), await send(transport)
    assert (first.failure, first.status, first.body) == (None, 200, b"final")
    assert "x-final" in first.headers
    assert "link" not in first.headers
    assert (second.body, second.reused) == (b"next", True)


async def test_the_first_byte_is_that_of_the_reply_and_not_of_an_interim_one(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    """A server that says 100 or 103 at once has not begun to answer."""
    go_on = asyncio.Event()
    interim = b"HTTP/1.1 103 Early Hints\r\n\r\n"
    server = await scripted([[interim, go_on, play.whole(b"final")]])
    transport = await opened(server.url)
    asking = asyncio.ensure_future(send(transport))
    await server.wait_requests(1, timeout_s=20)
    await asyncio.sleep(
        0.05
    )  # the interim reply is read meanwhile; if not, the test only says less
    released_ns = monotonic_ns()
    go_on.set()
    exchange = await asking
    assert exchange.failure is None
    assert exchange.first_byte_ns is not None
    assert exchange.first_byte_ns >= released_ns


async def test_chunk_extensions_upper_case_sizes_and_trailers_are_understood(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    body = b"data: 0123456789\n\n"
    raw = HEAD + b'\r\n12;name="a;b"\r\n' + body + b"\r\n000A\r\n0123456789\r\n"
    raw += b"0;last\r\nX-Trailer: yes\r\n\r\n"
    server = await scripted([[raw], [play.whole(b"next")]])
    transport = await opened(server.url)
    first, second = await send(transport), await send(transport)
    assert (first.failure, first.body) == (None, body + b"0123456789")
    assert (second.body, second.reused) == (b"next", True)


async def test_deflate_is_undone_and_a_coding_nobody_asked_for_is_a_protocol_failure(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    server = await scripted(
        [
            [play.whole(zlib.compress(b"plain" * 100), headers="Content-Encoding: deflate\r\n")],
            [play.whole(b"\x1b\x00", headers="Content-Encoding: br\r\n")],
        ]
    )
    transport = await opened(server.url)
    assert (await send(transport)).body == b"plain" * 100
    second = await send(transport)
    assert second.failure is not None
    assert (second.failure.category, second.body) == ("protocol", b"")


async def test_gzip_in_many_small_chunks_keeps_every_byte(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    """As nginx sends a stream: flushed after each event, so that each can be read when it came."""
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    events = [f"data: event {number}\n\n".encode() for number in range(50)]
    pieces = [packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH) for event in events]
    raw = play.chunked(*pieces, packer.flush(), headers="Content-Encoding: gzip\r\n")
    server = await scripted([[raw], [raw[i : i + 7] for i in range(0, len(raw), 7)]])
    transport = await opened(server.url)
    for _ in range(2):
        exchange = await send(transport)
        assert (exchange.failure, exchange.body) == (None, b"".join(events))


async def test_a_gzip_reply_in_several_members_keeps_all_of_them(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    """RFC 1952 section 2.2: a gzip stream may be several, one after another."""
    packed = gzip.compress(b"one, ") + gzip.compress(b"two, ") + gzip.compress(b"three")
    raw = play.whole(packed, headers="Content-Encoding: gzip\r\n")
    server = await scripted([[raw], [raw[i : i + 7] for i in range(0, len(raw), 7)]])
    transport = await opened(server.url)
    for _ in range(2):
        exchange = await send(transport)
        assert (exchange.failure, exchange.body) == (None, b"one, two, three")


@pytest.mark.parametrize("lost", [1, 6, 20])
@pytest.mark.parametrize("framing", ["length", "chunks", "connection"])
async def test_a_compressed_reply_without_its_end_is_a_protocol_failure(
    scripted: Any, play: SimpleNamespace, opened: Opened, lost: int, framing: str
) -> None:
    """It was taken for a whole one."""
    packed = gzip.compress(bytes(range(256)) * 4)[:-lost]
    field = "Content-Encoding: gzip\r\n"
    if framing == "length":
        steps = [play.whole(packed, headers=field)]
    elif framing == "chunks":
        steps = [play.chunked(packed, headers=field)]
    else:
        head = f"HTTP/1.1 200 OK\r\n{field}\r\n".encode()
        steps = [head + packed, play.close]
    server = await scripted([steps])
    exchange = await send(await opened(server.url))
    assert exchange.failure is not None
    assert exchange.failure.category == "protocol"
    assert exchange.failure.message == "the reply's compressed body ends too early"
    assert exchange.done_ns is None


async def test_a_reply_that_promises_a_coding_and_has_no_body_is_whole(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    server = await scripted([[play.whole(b"", headers="Content-Encoding: gzip\r\n")]])
    exchange = await send(await opened(server.url))
    assert (exchange.failure, exchange.body) == (None, b"")


async def test_small_members_cannot_fill_the_memory_together(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    packed = gzip.compress(bytes(40_000)) * 5
    server = await scripted([[play.whole(packed, headers="Content-Encoding: gzip\r\n")]])
    exchange = await send(await opened(server.url, max_body_bytes=100_000))
    assert exchange.failure is not None
    assert "over 100000 bytes" in exchange.failure.message


# --- a second sending is safe only before the first byte -----------------------------------------


async def test_a_kept_connection_that_was_reset_is_sent_again_once(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    server = await scripted([[play.whole(b"one")], [play.reset]], [[play.whole(b"two")]])
    transport = await opened(server.url)
    await send(transport)
    second = await send(transport)
    assert (second.failure, second.body, second.resent) == (None, b"two", True)


@pytest.mark.parametrize(
    "begun",
    [b"H", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", HEAD + b"\r\n"],
    ids=["one byte", "a status", "a head", "a chunked head"],
)
async def test_a_kept_connection_lost_after_a_byte_came_is_not_sent_again(
    scripted: Any, play: SimpleNamespace, opened: Opened, kind: str, begun: bytes
) -> None:
    """The target has begun to work on it: sending it twice would load it twice."""
    if kind == "aiohttp" and b"\r\n\r\n" not in begun:
        pytest.skip("aiohttp tells of a reply when its head is whole, not before")
    server = await scripted([[play.whole(b"one")], [begun, play.close]], [[play.whole(b"never")]])
    transport = await opened(server.url)
    await send(transport)
    second = await send(transport)
    assert second.failure is not None
    assert second.failure.category == "disconnected"
    assert (second.reused, second.resent) == (True, False)
    assert len(server.requests) == 2


async def test_a_kept_connection_that_stays_silent_is_a_timeout_and_not_sent_again(
    scripted: Any, play: SimpleNamespace, opened: Opened
) -> None:
    server = await scripted([[play.whole(b"one")], [play.silence]], [[play.whole(b"never")]])
    transport = await opened(server.url)
    await send(transport)
    exchange = Exchange()
    await transport.exchange(ASK, exchange, Timeouts(total_s=0.2))
    assert exchange.failure is not None
    assert (exchange.failure.category, exchange.resent) == ("timeout", False)
    assert len(server.requests) == 2


# --- whole streams, as a backend reads them ------------------------------------------------------

WORDS = ["Zażółć", " gęślą", " jaźń", " 😀", " and", " more"]


def event(delta: dict[str, Any], finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return json.dumps({"id": "c", "choices": [choice]}, ensure_ascii=False)


def stream(line_end: str, is_folded: bool, has_done: bool) -> bytes:
    """One reply in six tokens, its events written as servers, gateways and proxies write them."""
    data = [event({"role": "assistant", "content": ""})]
    data += [event({"content": word}) for word in WORDS]
    data.append(event({}, "stop"))
    usage = {"prompt_tokens": 3, "completion_tokens": len(WORDS), "total_tokens": 9}
    data.append(json.dumps({"id": "c", "choices": [], "usage": usage}))
    if has_done:
        data.append("[DONE]")
    written = [": ping", ""]
    for number, text in enumerate(data):
        written += ["event: message", f"id: {number}"] if number % 2 else [": a comment"]
        if is_folded and text.startswith("{"):
            before, _, after = text.partition(", ")
            written += [f"data: {before},", f"data:{after}", ""]
        else:
            written += [f"data: {text}", ""]
    # Without [DONE], without the last blank line either: the end of the stream ends the event.
    return line_end.join(written if has_done else written[:-1]).encode() + line_end.encode()


@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("is_folded", [False, True], ids=["one line", "multi-line data"])
@pytest.mark.parametrize("has_done", [True, False], ids=["done", "no done"])
async def test_a_stream_is_read_the_same_however_it_is_written_and_cut(
    scripted: Any,
    play: SimpleNamespace,
    kind: str,
    line_end: str,
    is_folded: bool,
    has_done: bool,
) -> None:
    """Chunks with odd boundaries, many events in one, one event and one character in several."""
    body = stream(line_end, is_folded, has_done)
    rng = random.Random(6)
    replies = []
    for pieces in (1, 3, 11, 40, len(body)):
        cuts = sorted(rng.sample(range(1, len(body)), pieces - 1))
        edges = [0, *cuts, len(body)]
        chunks = [body[a:b] for a, b in pairwise(edges)]
        raw = play.chunked(*chunks, headers="Content-Type: text/event-stream\r\n")
        edges = [0, *sorted(rng.sample(range(1, len(raw)), 9)), len(raw)]
        replies.append([raw[a:b] for a, b in pairwise(edges)])
    server = await scripted(replies)
    target = TargetSpec(url=server.url, model="m", transport=kind)  # type: ignore[arg-type]
    backend = create_backend(OpenAIBackendSpec(), target)
    await backend.startup()
    try:
        for _ in replies:
            progress = Progress()
            answer = await backend.resolve(Call(prompt="say it", output_tokens=6), (), progress)
            assert answer.failure is None
            assert progress.text == "".join(WORDS)
            assert (progress.output_tokens, progress.finish_reason) == (len(WORDS), "stop")
            assert answer.message is not None
            assert answer.message.content == "".join(WORDS)
            assert progress.sent_ns is not None
            assert progress.first_token_ns is not None
            assert progress.last_token_ns is not None
            assert progress.sent_ns <= progress.first_token_ns <= progress.last_token_ns
    finally:
        await backend.shutdown()
    assert server.connections == 1
