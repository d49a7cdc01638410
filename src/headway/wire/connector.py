"""Opens connections to one target: socket, then TLS, each timed apart (trap 44)."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable, Sequence

import aiohappyeyeballs

from headway.core.clock import monotonic_ns
from headway.wire import texts
from headway.wire.addresses import AddressBook
from headway.wire.connection import Connection
from headway.wire.exchange import Exchange, Timeouts, WireCategory, WireFailure
from headway.wire.origin import Origin
from headway.wire.tls import tls_failure_text

# RFC 8305 section 5: try the next address when the one before has not answered after 250 ms.
_HAPPY_EYEBALLS_DELAY_S = 0.25


class Connector:
    """Opens connections, one after another or many at once."""

    def __init__(
        self,
        origin: Origin,
        ssl_context: ssl.SSLContext | None,
        make_connection: Callable[[], Connection],
        spread: bool,
        addresses: Sequence[str] = (),
    ) -> None:
        self._origin = origin
        self._ssl_context = ssl_context
        self._make_connection = make_connection
        self._addresses = AddressBook(origin.host, origin.port, spread, addresses)

    async def open(
        self, exchange: Exchange, timeouts: Timeouts, left_s: float
    ) -> Connection | WireFailure:
        """A connection that can carry a request; its cost is put into `exchange`.

        Args:
            exchange: Gets `connect_ns` and `tls_ns`.
            timeouts: Its `connect_s` is for all of it: look-up, connect, handshake.
            left_s: What is left of the exchange's total time.
        """
        connect_s = timeouts.connect_s
        limit_s = left_s if connect_s is None else min(left_s, connect_s)
        try:
            async with asyncio.timeout(limit_s):
                return await self._open(exchange)
        except TimeoutError:
            if limit_s == connect_s:
                return WireFailure("timeout", texts.no_connection(timeouts))
            return WireFailure("timeout", texts.no_whole_reply(timeouts))
        except ssl.SSLError as error:
            return WireFailure("tls", tls_failure_text(error))
        except OSError as error:
            category: WireCategory = "connect" if exchange.connect_ns is None else "tls"
            return WireFailure(category, connect_failure_text(self._origin, error))

    async def _open(self, exchange: Exchange) -> Connection:
        began_ns = monotonic_ns()
        sock = await self._connect()
        connected_ns = monotonic_ns()
        exchange.connect_ns = connected_ns - began_ns
        # From here on the socket belongs to the event loop, which closes it on failure.
        connection = await self._start(sock)
        if self._ssl_context is not None:
            exchange.tls_ns = monotonic_ns() - connected_ns
        return connection

    async def _connect(self) -> socket.socket:
        if self._origin.unix_path is not None:
            return await _connect_unix(self._origin.unix_path)
        candidates = await self._addresses.candidates()
        try:
            sock = await aiohappyeyeballs.start_connection(
                candidates, happy_eyeballs_delay=_HAPPY_EYEBALLS_DELAY_S
            )
        except OSError:
            self._addresses.forget()
            raise
        # A request is one write: nothing is gained by waiting for more to put into its packet.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._addresses.pin(sock.getpeername())
        return sock

    async def _start(self, sock: socket.socket) -> Connection:
        loop = asyncio.get_running_loop()
        context = self._ssl_context
        _, connection = await loop.create_connection(
            self._make_connection,
            sock=sock,
            ssl=context,
            server_hostname=self._origin.host if context is not None else None,
        )
        if context is None:
            connection.write_directly_to(sock)
        return connection


async def _connect_unix(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, path)
    except BaseException:
        sock.close()
        raise
    return sock


def connect_failure_text(origin: Origin, error: OSError) -> str:
    """One sentence on why no connection came about, equal for equal causes."""
    if isinstance(error, socket.gaierror):
        return f"the name {origin.host} does not resolve"
    if isinstance(error, ConnectionRefusedError):
        return f"connection refused: nothing listens at {origin.url}"
    reason = os.strerror(error.errno) if error.errno else (str(error) or type(error).__name__)
    return f"no connection to {origin.url} ({reason})"
