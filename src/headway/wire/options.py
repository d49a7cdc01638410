"""What a transport is opened with."""

from __future__ import annotations

import msgspec

from headway.wire.origin import Origin
from headway.wire.tls import TlsOptions

MAX_BODY_BYTES = 64 * 1024 * 1024
"""A million-token reply with a 60-byte event each still fits; a runaway server does not."""


class TransportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """One target, and how to reach it."""

    origin: Origin
    tls: TlsOptions = TlsOptions()
    proxy: str | None = None
    """`http://host:port`, for the aiohttp transport only."""
    max_connections: int | None = None
    """Exchanges beyond it wait for a free connection (`Exchange.pool_wait_ns`)."""
    max_body_bytes: int = MAX_BODY_BYTES
    """A larger body ends its exchange with a failure."""
    spread_addresses: bool = False
    """Go round the host name's addresses instead of staying with the first that answers."""
    addresses: tuple[str, ...] = ()
    """Connect to these; empty: look the host's name up."""
