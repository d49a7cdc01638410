"""The seam between a backend and a transport: one HTTP exchange, stamped as it happens.

A backend renders a `WireRequest`, hands it over with an empty `Exchange`, and reads from that what
was measured. The exchange is filled in place, so whatever ends it early (a deadline, a cancel, a
dead peer) leaves everything that was known by then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

import msgspec

WireCategory = Literal["connect", "tls", "protocol", "disconnected", "timeout"]


class WireFailure(msgspec.Struct, frozen=True):
    """Why an exchange has no whole reply."""

    category: WireCategory
    message: str


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Deadlines of one exchange, in seconds; None waits without one (never for `total_s`)."""

    connect_s: float | None = 10.0
    first_token_s: float | None = None
    """From sent until `Exchange.watch` has said that a token came (any body byte without one)."""
    idle_s: float | None = None
    """Between two reads of the reply."""
    total_s: float = 600.0


class WireRequest(msgspec.Struct, frozen=True):
    """An HTTP request, ready to be written."""

    method: str
    path: str
    """Origin form: path and query."""
    headers: Mapping[str, str]
    """Without Host, Connection and Content-Length, which the transport owns."""
    body: bytes = b""


class Exchange:
    """What is known of one exchange so far. Times are monotonic nanoseconds.

    Attributes:
        pool_wait_ns, connect_ns, tls_ns: Durations before `sent_ns`; None where there was none.
        sent_ns: When the request was handed to the socket (its latest sending, when `resent`).
        first_byte_ns: When the first byte of the reply's head was read.
        raw_headers: The reply's header fields as they came; `headers` reads them.
        reads: (time, body bytes) for every socket read that carried body, de-chunked and, with a
            Content-Encoding, decompressed. Events may be split over reads and many share one.
        body_bytes: How many bytes `reads` holds.
        done_ns: When the reply's last byte was read; None when it never was.
        watch: Called with each read's (time, bytes) until it returns True: "the first token came".
        owner: Of whoever asked by `FastTransport.begin`, to know whose it is.
        carrier: The connection that it was begun on.
        data: What was sent, where it may have to be sent again.
    """

    # Not a Struct: setting an attribute of one takes five times as long, and a dozen are set.
    __slots__ = (
        "body_bytes",
        "carrier",
        "connect_ns",
        "data",
        "done_ns",
        "failure",
        "first_byte_ns",
        "owner",
        "pool_wait_ns",
        "raw_headers",
        "reads",
        "resent",
        "reused",
        "sent_ns",
        "status",
        "tls_ns",
        "watch",
    )

    def __init__(self, watch: Callable[[int, bytes], bool] | None = None) -> None:
        self.pool_wait_ns: int | None = None
        self.connect_ns: int | None = None
        self.tls_ns: int | None = None
        self.sent_ns: int | None = None
        self.first_byte_ns: int | None = None
        self.done_ns: int | None = None
        self.status: int | None = None
        self.raw_headers: dict[bytes, bytes] = {}
        self.reads: list[tuple[int, bytes]] = []
        self.body_bytes = 0
        self.reused = False
        self.resent = False
        self.failure: WireFailure | None = None
        self.watch = watch
        self.owner: Any = None
        self.carrier: Any = None
        self.data = b""

    @property
    def headers(self) -> dict[str, str]:
        """The reply's header fields, names in lower case; of a repeated one the last value.

        Decoded when asked for, because most exchanges never are.
        """
        return {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in self.raw_headers.items()
        }

    @property
    def body(self) -> bytes:
        """All of the body read so far."""
        if len(self.reads) == 1:
            return self.reads[0][1]
        return b"".join([data for _, data in self.reads])


class Transport(Protocol):
    """Carries exchanges to one origin over a pool of connections of its own."""

    async def startup(self) -> None:
        """Prepare; opens no connection.

        Raises:
            ConfigError: the URL, certificate files or proxy cannot be used.
        """
        ...

    async def exchange(self, request: WireRequest, exchange: Exchange, timeouts: Timeouts) -> None:
        """Send `request` and fill `exchange` until its reply is whole or it failed.

        Returns normally in both cases: a failure is `exchange.failure`. Cancelling the call closes
        the connection and leaves what was read.
        """
        ...

    async def shutdown(self) -> None:
        """Close every connection; safe to call twice."""
        ...
