"""HTTP/1.1 as the simulated server speaks it: one protocol for each connection."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from functools import lru_cache
from http import HTTPStatus
from typing import Protocol, cast

import httptools

from headway.core.clock import monotonic_ns

MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_PIPELINED = 64
MAX_UNSENT_BYTES = 16 * 1024 * 1024
"""A client that leaves this much of its replies unread is cut off: its queue is bounded."""

JSON = b"application/json"
_LINGER_RESET = struct.pack("ii", 1, 0)
_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\nserver: headway-sim\r\n".encode()
    for status in HTTPStatus
}


class Request:
    """One request, whole."""

    __slots__ = ("arrival_ns", "body", "chunked", "headers", "keep_alive", "method", "path")

    def __init__(
        self, method: bytes, path: bytes, headers: dict[bytes, bytes], body: bytes
    ) -> None:
        self.method = method
        self.path = path
        self.headers = headers
        """By lower-case name."""
        self.body = body
        self.arrival_ns = 0
        self.keep_alive = True
        self.chunked = True
        """Whether the client understands a chunked reply."""


class Service(Protocol):
    """Answers requests; each must end in `Connection.finish`, `close` or `reset`."""

    def handle(self, request: Request, connection: Connection) -> None: ...

    def connected(self, connection: Connection) -> None: ...

    def disconnected(self, connection: Connection) -> None: ...


class Listener(Protocol):
    """Wants to know when the client leaves before the reply is whole."""

    def client_left(self) -> None: ...


CHUNKED = b"transfer-encoding: chunked\r\n"
UNTIL_CLOSE = b""


def content_length(body: bytes) -> bytes:
    """The header that says how long `body` is."""
    return b"content-length: %d\r\n" % len(body)


@lru_cache(4096)
def response_head(status: int, content_type: bytes, framing: bytes, keep_alive: bool) -> bytes:
    """A response's head without the empty line that ends it.

    Args:
        status: The HTTP status.
        content_type: As it goes into the header.
        framing: `CHUNKED`, `UNTIL_CLOSE` or a `content_length`.
        keep_alive: Whether the connection stays open after it.
    """
    line = _STATUS_LINES.get(status) or b"HTTP/1.1 %d Status\r\nserver: headway-sim\r\n" % status
    closing = b"" if keep_alive else b"connection: close\r\n"
    return b"%bcontent-type: %b\r\n%b%b" % (line, content_type, framing, closing)


class Connection(asyncio.Protocol):
    """Parses requests and hands them to the service, one at a time, in order."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._read_ns = 0
        self._queue: deque[Request] = deque()
        self.current: Request | None = None
        self._serving = False
        self.listener: Listener | None = None

    # What the service does with a connection.

    def send(self, data: bytes) -> None:
        """Write part of the reply; without effect once the client has left."""
        if self._transport is not None:
            self._transport.write(data)

    def finish(self) -> None:
        """The reply is whole: go on with the next request."""
        request, self.current, self.listener = self.current, None, None
        if request is not None and not request.keep_alive:
            self.close()
        elif self._queue:
            self.serve_queue()

    def close(self) -> None:
        """End the connection after what was written."""
        self.listener = None
        if self._transport is not None:
            self._transport.close()

    def reset(self) -> None:
        """End the connection with a TCP reset."""
        self.listener = None
        if self._transport is None:
            return
        raw = self._transport.get_extra_info("socket")
        if raw is not None and raw.family != socket.AF_UNIX:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
        self._transport.abort()

    def serve_queue(self) -> None:
        """Handle queued requests until one is left unanswered for now."""
        if self._serving:
            return
        self._serving = True
        try:
            while self._queue and self.current is None and self._transport is not None:
                self.current = self._queue.popleft()
                self._service.handle(self.current, self)
        finally:
            self._serving = False

    # What the event loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have asyncio.Transport's methods without being its subclasses.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=MAX_UNSENT_BYTES)
        self._service.connected(self)

    def data_received(self, data: bytes) -> None:
        self._read_ns = monotonic_ns()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(HTTPStatus.BAD_REQUEST)
        except httptools.HttpParserError:
            self._refuse(HTTPStatus.BAD_REQUEST)
        if self._queue:
            self.serve_queue()
        elif b"expect" in self._headers:
            self._invite_body()

    def pause_writing(self) -> None:
        self.reset()

    def resume_writing(self) -> None:
        pass

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._queue.clear()
        listener, self.listener = self.listener, None
        if listener is not None:
            listener.client_left()
        self._service.disconnected(self)

    # What the parser tells. Each call costs, so there is none that is not needed.

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._body_bytes > MAX_BODY_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        parser = self._parser
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        request = Request(parser.get_method(), self._url, self._headers, body)
        request.arrival_ns = self._read_ns
        request.chunked = parser.get_http_version() != "1.0"
        request.keep_alive = request.chunked and parser.should_keep_alive()
        self._url, self._headers, self._body, self._body_bytes = b"", {}, [], 0
        if len(self._queue) >= MAX_PIPELINED:
            self._refuse(HTTPStatus.TOO_MANY_REQUESTS)
        else:
            self._queue.append(request)

    def _invite_body(self) -> None:
        """Tell a client that waits for it to send the body; its head has been read."""
        if self._headers.pop(b"expect").lower() == b"100-continue":
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _refuse(self, status: HTTPStatus) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        self._queue.clear()
        head = response_head(status.value, b"text/plain", content_length(b""), keep_alive=False)
        self.send(head + b"\r\n")
        self.close()
