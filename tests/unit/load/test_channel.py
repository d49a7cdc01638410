"""The channel between parent and worker: framing, backpressure, the peer's end."""

from __future__ import annotations

import asyncio
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.clock import monotonic_ns, ns_from_s
from headway.core.frames import encode_frame
from headway.load.channel import HIGH_WATER_BYTES, Channel

DEADLINE_S = 10.0


class End:
    def __init__(self, sock):
        self.received = []
        self.closed = asyncio.Event()
        self.channel = Channel(sock, self.received.append, self.closed.set)


@pytest.fixture
async def ends():
    a, b = socket.socketpair()
    pair = End(a), End(b)
    yield pair
    for end in pair:
        end.channel.close()


async def until(condition):
    deadline_ns = monotonic_ns() + ns_from_s(DEADLINE_S)
    while not condition():
        assert monotonic_ns() < deadline_ns
        await asyncio.sleep(0.001)


async def test_messages_arrive_whole_and_in_order(ends):
    left, right = ends
    sent = [bytes([n % 256]) * n for n in (0, 1, 10, 124, 380, 636, 100_000)]
    for payload in sent:
        left.channel.send(payload)
    await until(lambda: len(right.received) == len(sent))
    assert right.received == sent


@settings(max_examples=30, deadline=None)
@given(st.lists(st.binary(max_size=700), max_size=20), st.integers(1, 50))
def test_any_chunking_gives_the_same_messages(payloads, step):
    """Trap 41: a length byte equal to a separator broke framing (124, 380, 636 …)."""

    async def scenario():
        ours, theirs = socket.socketpair()
        end = End(theirs)
        stream = b"".join(encode_frame(payload) for payload in payloads)
        for start in range(0, len(stream), step):
            ours.send(stream[start : start + step])
            await asyncio.sleep(0)
        ours.close()
        await asyncio.wait_for(end.closed.wait(), DEADLINE_S)
        return end.received

    assert asyncio.run(scenario()) == payloads


async def test_a_slow_reader_makes_the_sender_wait():
    """Trap 40: send buffers were unbounded."""
    ours, theirs = socket.socketpair()
    end = End(ours)
    theirs.setblocking(False)
    block = bytes(1024 * 1024)
    for _ in range(2 + HIGH_WATER_BYTES // len(block)):
        end.channel.send(block)
    assert end.channel.over_high_water
    waiting = asyncio.create_task(end.channel.wait_drained())
    await asyncio.sleep(0.01)
    assert not waiting.done()
    loop = asyncio.get_running_loop()
    while not waiting.done():
        await loop.sock_recv(theirs, 1 << 20)
    assert not end.channel.over_high_water
    end.channel.close()
    theirs.close()


async def test_what_a_dead_peer_had_written_is_read_before_the_end(ends):
    """A failed write must not throw away records that lie unread in the socket."""
    left, right = ends
    for n in range(100):
        right.channel.send(b"record %d" % n)
    right.channel.close()
    left.channel.send(b"to nobody")
    left.channel.send(b"to nobody")
    await asyncio.wait_for(left.closed.wait(), DEADLINE_S)
    assert len(left.received) == 100
    assert left.channel.is_closed


async def test_broken_framing_counts_as_a_dead_peer():
    ours, theirs = socket.socketpair()
    end = End(ours)
    theirs.send(b"\xff\xff\xff\xff garbage")
    await asyncio.wait_for(end.closed.wait(), DEADLINE_S)
    theirs.close()


async def test_sending_after_the_end_and_closing_twice_are_harmless(ends):
    left, _ = ends
    left.channel.close()
    left.channel.close()
    left.channel.send(b"x")
    await asyncio.wait_for(left.channel.wait_drained(), DEADLINE_S)


async def test_whoever_closes_at_a_message_hears_no_further_one():
    """Several may have come in one read."""
    ours, theirs = socket.socketpair()
    received = []

    def receive(payload):
        received.append(payload)
        channel.close()

    channel = Channel(theirs, receive, lambda: received.append("closed"))
    ours.sendall(encode_frame(b"one") + encode_frame(b"two"))
    await until(lambda: received)
    assert channel.is_closed
    await asyncio.sleep(0)
    assert received == [b"one"]
    ours.close()
