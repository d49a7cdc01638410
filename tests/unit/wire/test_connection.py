"""The connection fed directly: any cutting of a reply's bytes gives the same exchange."""

from __future__ import annotations

import asyncio
import gzip
import socket
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.clock import NS_PER_S, monotonic_ns
from headway.wire import texts
from headway.wire.connection import Connection
from headway.wire.exchange import Exchange, Timeouts
from headway.wire.reply_heads import ReplyHeads

LIMITS = Timeouts(total_s=5)
BODY = 'data: {"text":"żółć 😀"}\n\ndata: [DONE]\n\n'.encode()


def framed(kind: str) -> tuple[bytes, bytes]:
    """(raw reply, its body)"""
    if kind == "length":
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY), BODY
    if kind == "interim":
        return b"HTTP/1.1 100 Continue\r\n\r\n" + framed("length")[0], BODY
    packed = gzip.compress(BODY, mtime=0) if kind == "gzip" else BODY
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
    head += b"Content-Encoding: gzip\r\n\r\n" if kind == "gzip" else b"\r\n"
    pieces = [packed[:7], packed[7:8], packed[8:]]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return head + chunks + b"0\r\nX-Trailer: yes\r\n\r\n", BODY


async def fed(
    pieces: list[bytes],
    heads: ReplyHeads | None = None,
    request: bytes = b"GET / HTTP/1.1\r\n\r\n",
) -> tuple[Exchange, bool]:
    """The exchange after `pieces` were received on a real connection, and whether that is kept."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    loop = asyncio.get_running_loop()
    lost = asyncio.Event()
    heads = heads or ReplyHeads()
    _, connection = await loop.create_connection(
        lambda: Connection(loop, 1_000_000, heads, lambda _: None, lambda _: lost.set()),
        sock=ours,
    )
    exchange = Exchange()
    ended: list[Exchange] = []
    deadline_ns = monotonic_ns() + NS_PER_S
    connection.send(request, exchange, deadline_ns, LIMITS, ended.append)
    for piece in pieces:
        if not ended:
            connection.data_received(piece)
    is_kept = connection.is_reusable
    connection.abort()
    theirs.close()
    await asyncio.wait_for(lost.wait(), 5)
    return exchange, is_kept


@settings(max_examples=150, deadline=None)
@given(
    kind=st.sampled_from(["length", "chunked", "gzip", "interim"]),
    cuts=st.lists(st.integers(0, 400), max_size=12),
)
def test_any_cutting_of_a_reply_gives_the_same_exchange(kind: str, cuts: list[int]) -> None:
    raw, body = framed(kind)
    edges = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    pieces = [raw[a:b] for a, b in pairwise(edges) if a < b]
    exchange, is_kept = asyncio.run(fed(pieces))
    assert exchange.failure is None
    assert (exchange.status, exchange.body, exchange.body_bytes) == (200, body, len(body))
    assert exchange.done_ns is not None
    assert is_kept
    times = [time for time, _ in exchange.reads]
    assert times == sorted(times)
    assert all(piece for _, piece in exchange.reads)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_make_a_connection_raise(noise: bytes) -> None:
    """Whatever a server sends ends as a reply, a failure, or waiting for more."""
    exchange, _ = asyncio.run(fed([b"HTTP/1.1 200 OK\r\n" + noise]))
    assert exchange.failure is None or exchange.failure.category in ("protocol", "disconnected")


async def test_one_read_has_one_time_whatever_it_holds() -> None:
    """One timestamp a socket read, however many chunks share it (trap 46)."""
    raw, body = framed("chunked")
    exchange, _ = await fed([raw])
    assert len(exchange.reads) == 1
    assert exchange.reads[0][1] == body
    assert exchange.first_byte_ns == exchange.reads[0][0] == exchange.done_ns


PLAIN, _ = framed("length")


async def test_a_head_seen_before_gives_the_same_exchange_without_the_parser() -> None:
    heads = ReplyHeads()
    by_parser, _ = await fed([PLAIN], heads)
    assert len(heads.known) == 1
    by_head, is_kept = await fed([PLAIN], heads)
    assert is_kept
    for name in ("status", "raw_headers", "body", "body_bytes", "failure"):
        assert getattr(by_head, name) == getattr(by_parser, name), name
    assert by_head.first_byte_ns == by_head.reads[0][0] == by_head.done_ns


@settings(max_examples=150, deadline=None)
@given(
    kind=st.sampled_from(["length", "chunked", "gzip", "interim", "head only"]),
    cuts=st.lists(st.integers(0, 400), max_size=4),
    extra=st.sampled_from([b"", b"x", b"HTTP/1.1 200 OK\r\n\r\n"]),
)
def test_what_was_learned_changes_no_reply(kind: str, cuts: list[int], extra: bytes) -> None:
    """Whole, cut anywhere, or with more behind it: as without any memory."""
    raw = b"HTTP/1.1 204 No Content\r\n\r\n" if kind == "head only" else framed(kind)[0]
    raw += extra
    edges = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    pieces = [raw[a:b] for a, b in pairwise(edges) if a < b]

    async def twice() -> tuple[tuple[Exchange, bool], tuple[Exchange, bool]]:
        heads = ReplyHeads()
        for one in ("length", "chunked", "gzip", "interim"):
            await fed([framed(one)[0]], heads)
        await fed([b"HTTP/1.1 204 No Content\r\n\r\n"], heads)
        return await fed(pieces), await fed(pieces, heads)

    (fresh, fresh_kept), (knowing, knowing_kept) = asyncio.run(twice())
    assert knowing_kept == fresh_kept
    for name in ("status", "raw_headers", "body", "body_bytes", "failure"):
        assert getattr(knowing, name) == getattr(fresh, name), name


async def test_only_plain_replies_are_learned() -> None:
    """Chunks, codings, interim replies, and what ends its connection are left to the parser."""
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
    for raw in (*(framed(kind)[0] for kind in ("chunked", "gzip", "interim")), closing):
        heads = ReplyHeads()
        exchange, _ = await fed([raw], heads)
        assert exchange.done_ns is not None
        assert not heads.known


async def test_heads_that_never_come_again_are_no_longer_learned() -> None:
    heads = ReplyHeads()
    for number in range(400):
        head = b"HTTP/1.1 200 OK\r\nX-Request-Id: %d\r\nContent-Length: 2\r\n\r\n" % number
        heads.learn(head + b"ok", 200, {}, b"ok") if heads.is_learning else None
        assert len(heads.known) <= 64
    assert not heads.is_learning


async def test_known_and_parsed_replies_take_turns_on_one_connection() -> None:
    """The parser does not notice the replies that it was not shown."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    loop = asyncio.get_running_loop()
    lost = asyncio.Event()
    heads = ReplyHeads()
    _, connection = await loop.create_connection(
        lambda: Connection(loop, 1_000_000, heads, lambda _: None, lambda _: lost.set()),
        sock=ours,
    )
    for kind in ("length", "length", "chunked", "length", "interim", "gzip", "length", "length"):
        raw, body = framed(kind)
        for pieces in ([raw], [raw[:30], raw[30:]]):
            exchange, ended = Exchange(), list[Exchange]()
            deadline_ns = monotonic_ns() + NS_PER_S
            connection.send(b"GET / HTTP/1.1\r\n\r\n", exchange, deadline_ns, LIMITS, ended.append)
            for piece in pieces:
                assert not ended
                connection.data_received(piece)
            assert ended == [exchange]
            assert (exchange.failure, exchange.status, exchange.body) == (None, 200, body)
            assert connection.is_reusable
    connection.abort()
    theirs.close()
    await asyncio.wait_for(lost.wait(), 5)


@pytest.mark.parametrize("length", [0, 1000])
async def test_a_reply_to_head_has_no_body_whatever_length_it_names(length: int) -> None:
    exchange, is_kept = await fed(
        [b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length],
        request=b"HEAD / HTTP/1.1\r\n\r\n",
    )
    assert (exchange.failure, exchange.status, exchange.body) == (None, 200, b"")
    assert exchange.done_ns is not None
    assert not is_kept, "the parser would take the next reply for the body"


class Open:
    """A connection on a socket pair without TLS, as the connector makes it."""

    def __init__(self) -> None:
        self.ended: list[Exchange] = []
        self.lost = asyncio.Event()

    async def begin(self) -> Connection:
        ours, self.peer = socket.socketpair()
        ours.setblocking(False)
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: Connection(loop, 1000, ReplyHeads(), lambda _: None, lambda _: self.lost.set()),
            sock=ours,
        )
        connection.write_directly_to(ours)
        return connection

    def send(self, connection: Connection) -> Exchange:
        exchange = Exchange()
        deadline_ns = monotonic_ns() + 60 * NS_PER_S
        request = b"GET / HTTP/1.1\r\n\r\n"
        connection.send(request, exchange, deadline_ns, LIMITS, self.ended.append)
        return exchange


async def test_a_request_to_a_peer_that_is_gone_fails_after_the_call_and_once() -> None:
    """Whoever sends has not begun to wait yet: the failure comes from the loop."""
    opened = Open()
    connection = await opened.begin()
    opened.peer.close()
    exchange = opened.send(connection)
    assert opened.ended == []
    await asyncio.wait_for(opened.lost.wait(), 5)
    assert opened.ended == [exchange]
    assert exchange.failure is not None
    assert exchange.failure.category == "disconnected"
    assert "reset" in exchange.failure.message
    assert not connection.is_reusable


async def test_the_first_reason_for_the_end_of_an_exchange_is_the_one_that_is_told() -> None:
    """Shut down between the failed write and the call that would have told of it."""
    opened = Open()
    connection = await opened.begin()
    opened.peer.close()
    exchange = opened.send(connection)
    connection.abort()
    await asyncio.wait_for(opened.lost.wait(), 5)
    await asyncio.sleep(0)
    assert opened.ended == [exchange]
    assert exchange.failure is not None
    assert exchange.failure.message == texts.SHUT_DOWN


async def test_giving_up_an_exchange_that_is_over_leaves_the_connection_to_the_next() -> None:
    opened = Open()
    connection = await opened.begin()
    first = opened.send(connection)
    connection.data_received(PLAIN)
    second = opened.send(connection)
    assert not connection.abandon(first)
    assert not connection.is_closed
    assert connection.abandon(second)
    assert connection.is_closed
    assert opened.ended == [first]
    await asyncio.wait_for(opened.lost.wait(), 5)
    opened.peer.close()
