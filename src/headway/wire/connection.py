"""One HTTP/1.1 connection to the target, carrying one exchange at a time.

This is the hot path. What is done for each socket read: one timestamp, one call into the C parser,
one `bytes.join`; a reply whose head is known needs no parser at all (`reply_heads`). Nothing is
decoded here: who wants tokens reads `Exchange.reads` afterwards. Nothing is awaited here: the end
of an exchange is a call, which whoever sends by a coroutine turns into a future's result.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import cast

import httptools

from headway.core.clock import monotonic_ns
from headway.wire import texts
from headway.wire.content_coding import Decompressor, make_decompressor
from headway.wire.deadlines import Deadlines
from headway.wire.exchange import Exchange, Timeouts, WireCategory, WireFailure
from headway.wire.reply_heads import HEAD_END, ReplyHeads

_HEAD_END_BYTES = len(HEAD_END)


class Connection(asyncio.Protocol):
    """A protocol for the event loop to drive, and the exchange it works for.

    Args:
        loop: The running event loop.
        max_body_bytes: Bound of a reply's body.
        heads: What the connections of one transport have learned of its target's replies.
        on_free: Called when an exchange has ended, before whoever sent it hears of it.
        on_lost: Called once, when the connection is gone for good.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        max_body_bytes: int,
        heads: ReplyHeads,
        on_free: Callable[[Connection], None],
        on_lost: Callable[[Connection], None],
    ) -> None:
        self._loop = loop
        self._max_body_bytes = max_body_bytes
        self._reply_heads = heads
        self._known_heads = heads.known
        self._on_free = on_free
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._socket: socket.socket | None = None
        self._deadlines = Deadlines(loop, self._expire)
        self._exchange: Exchange | None = None
        self._on_end: Callable[[Exchange], None] = _ignore
        self._headers: dict[bytes, bytes] = {}
        self._pieces: list[bytes] = []
        # The parser looks these up once. Being methods of C types they cost no Python frame for
        # each header and each chunk: 128 chunks in one read take a third of the time.
        self.on_header = self._headers.__setitem__
        self.on_body = self._pieces.append
        self._parser = httptools.HttpResponseParser(self)
        self._is_head = False
        self._is_interim = False
        self._had_interim = False
        self._is_complete = False
        self._keeps_alive = False
        self._decompressor: Decompressor | None = None
        self._watches = False
        self._may_have_unsent = False
        self.is_closed = False
        """No further exchange can be sent on it."""

    # --- for the transport -----------------------------------------------------------------------

    def write_directly_to(self, sock: socket.socket) -> None:
        """Send requests by the socket's own `send` instead of the event loop's write.

        uvloop writes at the end of its iteration: with many tasks awake, a request would leave
        long after its `sent_ns`. Without TLS nothing stands between, so the send is made at once.
        """
        self._socket = sock

    def send(
        self,
        data: bytes,
        exchange: Exchange,
        total_deadline_ns: int,
        timeouts: Timeouts,
        on_end: Callable[[Exchange], None],
    ) -> None:
        """Write a request.

        Args:
            data: Head and body, in one piece.
            exchange: Filled as the reply comes in.
            total_deadline_ns: When the whole exchange must be over, monotonic.
            timeouts: The other deadlines.
            on_end: Called with the exchange when it is over, however it ended; never from within
                this call, and never after `abandon`.
        """
        self._on_end = on_end
        self._exchange = exchange
        self._is_head = data.startswith(b"HEAD ")
        self._had_interim = False
        self._is_complete = False
        self._watches = timeouts.first_token_s is not None or exchange.watch is not None
        exchange.sent_ns = sent_ns = monotonic_ns()
        self._deadlines.begin(sent_ns, total_deadline_ns, timeouts)
        self._write(data)

    @property
    def is_reusable(self) -> bool:
        """Whether the exchange that just ended left it fit for another one."""
        return self._exchange is None and not self.is_closed

    def abandon(self, exchange: Exchange) -> bool:
        """Nobody waits for this exchange any more: close; False when it has ended already."""
        if self._exchange is not exchange:
            return False
        self._on_end = _ignore
        self._end(keeps_alive=False)
        return True

    def abort(self) -> None:
        """Close at once; an exchange under way ends with a failure."""
        self._fail("disconnected", texts.SHUT_DOWN)

    # --- for the event loop ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods of asyncio.Transport without being one.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        now_ns = monotonic_ns()
        exchange = self._exchange
        if exchange is None:
            # Bytes that nobody asked for would be taken for the next request's reply.
            self._close()
            return
        deadlines = self._deadlines
        is_first = deadlines.last_read_ns is None
        if is_first:
            exchange.first_byte_ns = now_ns
            end = data.find(HEAD_END) + _HEAD_END_BYTES
            head = self._known_heads.get(data[:end])
            if head is not None and head.length == len(data) - end and not self._is_head:
                self._reply_heads.found()
                exchange.status = head.status
                exchange.raw_headers = head.fields
                if head.length:
                    exchange.body_bytes = head.length
                    exchange.reads.append((now_ns, data[end:]))
                exchange.done_ns = now_ns
                self._end(keeps_alive=True)
                return
            deadlines.first_read(now_ns)
        else:
            deadlines.last_read_ns = now_ns
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            # What follows a whole reply spoils the connection, not the reply.
            self._keeps_alive = False
            if not self._is_complete:
                self._fail("protocol", f"the reply is not valid HTTP/1.1 ({error})")
                return
        if self._pieces and not self._take_body(now_ns, exchange):
            return
        if self._is_complete:
            if self._decompressor is not None and not self._decompressor.is_whole:
                self._fail("protocol", texts.CODING_CUT)
                return
            exchange.done_ns = now_ns
            if is_first and self._keeps_alive and self._reply_heads.is_learning:
                self._learn(data, exchange)
            self._end(self._keeps_alive)

    def connection_lost(self, exc: Exception | None) -> None:
        exchange = self._exchange
        if exchange is not None:
            if exc is None and self._ends_with_connection(exchange):
                self._ended_with_connection(exchange)
            else:
                exchange.failure = WireFailure("disconnected", _lost_text(exc))
            self._end(keeps_alive=False)
        self._close()
        self._on_lost(self)

    # --- for the parser --------------------------------------------------------------------------

    def on_headers_complete(self) -> None:
        exchange, headers = self._exchange, self._headers
        if exchange is None or self._is_complete:
            raise httptools.HttpParserError("a second reply to one request")
        status = self._parser.get_status_code()
        if status < 200:
            self._is_interim = self._had_interim = True
            headers.clear()
            return
        if self._had_interim:
            exchange.first_byte_ns = self._deadlines.last_read_ns
        exchange.status = status
        exchange.raw_headers = fields = headers.copy()
        headers.clear()
        self._decompressor = make_decompressor(fields, self._max_body_bytes)
        if self._is_head:
            self._is_complete = True
            self._keeps_alive = False

    def on_message_complete(self) -> None:
        if self._is_interim:
            self._is_interim = False
        elif not self._is_complete:
            self._is_complete = True
            # The parser forgets it as soon as this callback returns.
            self._keeps_alive = self._parser.should_keep_alive()

    # --- inside ----------------------------------------------------------------------------------

    def _write(self, data: bytes) -> None:
        transport, sock = self._transport, self._socket
        assert transport is not None
        written = 0
        if self._may_have_unsent:
            # A target may answer before it has read all of a request.
            self._may_have_unsent = transport.get_write_buffer_size() > 0
        if sock is not None and not self._may_have_unsent:
            try:
                written = sock.send(data)
            except BlockingIOError:
                pass
            except OSError as error:
                # The peer is gone. Said from the loop, because the caller has not awaited yet.
                self._loop.call_soon(self._lose, self._exchange, error)
                return
            if written == len(data):
                return
        self._may_have_unsent = True
        transport.write(data[written:])

    def _lose(self, exchange: Exchange | None, error: OSError) -> None:
        if exchange is not None and self._exchange is exchange:
            self._fail("disconnected", _lost_text(error))

    def _take_body(self, now_ns: int, exchange: Exchange) -> bool:
        """Move the body's pieces of this read into the exchange; False when that ended it."""
        pieces = self._pieces
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        decompressor = self._decompressor
        if decompressor is not None:
            try:
                body = decompressor.decompress(body)
            except ValueError as error:
                self._fail("protocol", str(error))
                return False
            if not body:
                return True
        exchange.body_bytes += len(body)
        if exchange.body_bytes > self._max_body_bytes:
            self._fail("protocol", texts.too_large(self._max_body_bytes))
            return False
        exchange.reads.append((now_ns, body))
        if self._watches:
            watch = exchange.watch
            if watch is None or watch(now_ns, body):
                self._watches = False
                self._deadlines.token_came()
        return True

    def _learn(self, data: bytes, exchange: Exchange) -> None:
        """Remember the head of a plain reply that came whole in its first read."""
        if not self._had_interim and not self._is_head and self._decompressor is None:
            assert exchange.status is not None
            self._reply_heads.learn(data, exchange.status, exchange.raw_headers, exchange.body)

    def _ended_with_connection(self, exchange: Exchange) -> None:
        if self._decompressor is not None and not self._decompressor.is_whole:
            exchange.failure = WireFailure("protocol", texts.CODING_CUT)
        else:
            exchange.done_ns = monotonic_ns()

    def _ends_with_connection(self, exchange: Exchange) -> bool:
        """Whether the reply has no length of its own, so that the end of the connection is its."""
        if exchange.status is None or self._is_complete:
            return False
        names = {name.lower() for name in exchange.raw_headers}
        return not names & {b"content-length", b"transfer-encoding"}

    def _expire(self, text: str) -> None:
        self._fail("timeout", text)

    def _fail(self, category: WireCategory, message: str) -> None:
        if self._exchange is not None:
            self._exchange.failure = WireFailure(category, message)
        self._end(keeps_alive=False)

    def _end(self, keeps_alive: bool) -> None:
        exchange, self._exchange = self._exchange, None
        self._deadlines.end()
        if not keeps_alive:
            self._close()
        if exchange is not None:
            self._on_free(self)
            self._on_end(exchange)

    def _close(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self._deadlines.close()
        if self._transport is not None:
            # Not close(): TLS would wait for the peer's goodbye, and nothing is left to write.
            self._transport.abort()


def _ignore(exchange: Exchange) -> None:
    """For exchanges that nobody waits for."""


def _lost_text(error: Exception | None) -> str:
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return texts.RESET_EARLY
    return texts.CLOSED_EARLY
