"""HTTP on a connection, with bounds on what a client may send and how slowly.

uvicorn's protocol parses a header of any size for as long as it takes, so a few bytes a minute on
some thousand connections would use up the server's open files. Time is bounded by one timer a
connection, which is armed only while something is late: a request whose header comes in one piece,
as nearly all do, costs a comparison.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Container
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from headway.api.limits import ConnectionLimits
from headway.api.problems import MEDIA_TYPE, problem_response
from headway.api.security_headers import NO_STORE, SECURITY_HEADERS

_BODY_CHECK_S = 5.0
_LINGER_S = 1.0
Refused = tuple[int, str]


class Connections:
    """How many connections there are, of whom.

    Args:
        limits: The most.
        trusted: Addresses of proxies, which stand for many clients.
    """

    def __init__(self, limits: ConnectionLimits, trusted: Container[str] = ()) -> None:
        self._limits = limits
        self._trusted = trusted
        self._of: Counter[str] = Counter()
        self._all = 0

    def opened(self, address: str) -> bool:
        """Count a connection; False when it is one too many."""
        self._all += 1
        self._of[address] += 1
        if self._all > self._limits.most:
            return False
        return self._of[address] <= self._limits.most_of_one_address or self._is_many(address)

    def closed(self, address: str) -> None:
        """Count it no more."""
        self._all -= 1
        self._of[address] -= 1
        if not self._of[address]:
            del self._of[address]

    def _is_many(self, address: str) -> bool:
        return address in self._trusted or _is_loopback(address)


class GuardedConfig(uvicorn.Config):
    """uvicorn's settings, with what the protocol needs besides."""

    limits: ConnectionLimits
    counts: Connections


class GuardedProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, config: uvicorn.Config, *args: Any, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)
        guarded = cast(GuardedConfig, config)
        self._limits = guarded.limits
        self._counts = guarded.counts
        self._head_bytes = 0
        self._in_head = True
        self._body_bytes = 0
        self._around_bytes = 0  # since a byte of the body came: sizes of chunks, a trailer
        self._body_began_s = 0.0
        self._refused: Refused | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None
        self._address = ""
        self._over = False  # nothing more is read

    # The server only makes stream transports, which the base class's narrower type says too.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        if not self._counts.opened(self._address):
            self._answer(503, "too many connections; close those that are not needed")
            return
        self._timer = self.loop.call_later(self._limits.head_s, self._on_slow_head)

    def connection_lost(self, exc: Exception | None) -> None:
        self._counts.closed(self._address)
        self._over = True
        self._disarm()
        if self._unread_timer is not None:
            self._unread_timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._over:
            return
        self._head_bytes += len(data)
        self._around_bytes += len(data)
        super().data_received(data)
        if not self._in_head:
            self._await_body()
            if self._around_bytes > self._limits.head_bytes:
                # The parser keeps a field until it is whole, copying it with each piece.
                self._cut_off(431, f"a trailer may have {self._limits.head_bytes} bytes at most")
        elif self._head_bytes > self._limits.head_bytes:
            self._answer(431, self._too_much())
        elif self._head_bytes and self._timer is None:
            self._timer = self.loop.call_later(self._limits.head_s, self._on_slow_head)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        # What begins within a piece that ended another request is late like any other.
        self._head_bytes = max(self._head_bytes, 1)

    def on_header(self, name: bytes, value: bytes) -> None:
        # What follows a body is no header: a proxy that cleans headers does not look there.
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._check_head()
        self._in_head = False
        self._head_bytes = 0
        self._body_bytes = 0
        self._around_bytes = 0
        self._disarm()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        self._around_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._disarm()
        self._in_head = True
        self._head_bytes = 0
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread_timer = self.loop.call_later(self._limits.unread_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread_timer is not None:
            self._unread_timer.cancel()

    def send_400_response(self, msg: str) -> None:
        """What the protocol calls when the parser, or a check of ours inside it, has failed."""
        self._answer(*(self._refused or (400, "this is no HTTP request")))

    def _await_body(self) -> None:
        self._head_bytes = 0
        if self._timer is None and not self._over:
            self._body_began_s = self.loop.time()
            self._timer = self.loop.call_later(self._limits.body_s, self._on_slow_body)

    def _check_head(self) -> None:
        limits = self._limits
        if len(self.url) > limits.url_bytes:
            self._refused = 414, f"an address may have {limits.url_bytes} bytes at most"
        elif len(self.headers) > limits.header_fields:
            self._refused = 431, f"a header may have {limits.header_fields} fields at most"
        elif self._head_bytes > limits.head_bytes and self._head_size() > limits.head_bytes:
            self._refused = 431, self._too_much()
        if self._refused is not None:
            raise ValueError(self._refused[1])  # out of the parser, which then reads no further

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _too_much(self) -> str:
        return f"a request's header may have {self._limits.head_bytes} bytes at most"

    def _on_slow_head(self) -> None:
        self._timer = None
        if not self._head_bytes:
            self.transport.close()  # opened and never used, or opened in advance by a browser
        else:
            self._answer(408, f"the header did not come within {self._limits.head_s:g} s")

    def _on_slow_body(self) -> None:
        self._timer = None
        took_s = self.loop.time() - self._body_began_s
        # While the application is behind, reading is paused, and the client is not to blame.
        if self.flow.read_paused or self._body_bytes >= took_s * self._limits.body_bytes_per_s:
            self._timer = self.loop.call_later(_BODY_CHECK_S, self._on_slow_body)
        else:
            rate = self._limits.body_bytes_per_s
            self._cut_off(408, f"the body came slower than {rate} bytes a second")

    def _cut_off(self, status: int, detail: str) -> None:
        """Read no more of a body; who was answered already is not answered again."""
        if self.cycle is not None and self.cycle.response_started:
            self.transport.abort()
        else:
            self._answer(status, detail)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _answer(self, status: int, detail: str) -> None:
        """Answer without the application, and close."""
        if self._over or self.transport.is_closing():
            return
        self._over = True
        self._disarm()
        body = bytes(problem_response(status, detail).body)
        headers = (
            *SECURITY_HEADERS,
            NO_STORE,
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        )
        lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
        self.transport.write(STATUS_LINE[status] + lines + b"\r\n" + body)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        # Closed at once, with some of the request unread, the system would reset the connection,
        # and the client would never see the answer.
        self._timer = self.loop.call_later(_LINGER_S, self.transport.close)


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
