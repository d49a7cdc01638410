"""Opens the transport that was asked for; each is imported only when it is used."""

from __future__ import annotations

from typing import Literal

from headway.wire.exchange import Transport
from headway.wire.options import TransportOptions


def open_transport(kind: Literal["fast", "aiohttp"], options: TransportOptions) -> Transport:
    """A transport to one target, not started yet; a proxy always takes aiohttp."""
    if kind == "aiohttp" or options.proxy is not None:
        from headway.wire.aiohttp_transport import AiohttpTransport

        return AiohttpTransport(options)
    from headway.wire.fast import FastTransport

    return FastTransport(options)
