"""The connection fed directly: any cutting of a reply's bytes gives the same exchange."""

from __future__ import annotations

import asyncio
import gzip
import socket
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.clock import NS_PER_S, monotonic_ns
from headway.wire.connection import Connection
from headway.wire.exchange import Exchange, Timeouts

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


async def fed(pieces: list[bytes]) -> tuple[Exchange, bool]:
    """The exchange after `pieces` were received on a real connection, and whether that is kept."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    loop = asyncio.get_running_loop()
    lost = asyncio.Event()
    _, connection = await loop.create_connection(
        lambda: Connection(loop, 1_000_000, lambda _: lost.set()), sock=ours
    )
    exchange = Exchange()
    done = connection.send(b"GET / HTTP/1.1\r\n\r\n", exchange, monotonic_ns() + NS_PER_S, LIMITS)
    for piece in pieces:
        if not done.done():
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
