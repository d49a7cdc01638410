"""The fast transport: HTTP/1.1 on asyncio protocols with a C parser, on uvloop or plain asyncio."""

from __future__ import annotations

import asyncio

from headway.core.clock import NS_PER_S, monotonic_ns, ns_from_s
from headway.core.errors import ConfigError, InternalError
from headway.wire import texts
from headway.wire.connection import Connection
from headway.wire.connector import Connector
from headway.wire.exchange import Exchange, Timeouts, WireFailure, WireRequest
from headway.wire.head import HeadCache, RequestHead
from headway.wire.options import TransportOptions
from headway.wire.pool import ConnectionPool
from headway.wire.reply_heads import ReplyHeads
from headway.wire.tls import make_ssl_context

_SHUTDOWN_S = 2.0


class FastTransport:
    """A pool of connections to one target, for one event loop."""

    def __init__(self, options: TransportOptions) -> None:
        self._options = options
        self._heads = HeadCache(options.origin.host_header)
        self._pool = ConnectionPool(options.max_connections)
        self._open: set[Connection] = set()
        self._all_lost = asyncio.Event()
        self._connector: Connector | None = None

    async def startup(self) -> None:
        options = self._options
        if options.proxy is not None:
            raise ConfigError("the fast transport speaks to no proxy; use the aiohttp transport")
        context = make_ssl_context(options.tls) if options.origin.is_tls else None
        loop = asyncio.get_running_loop()
        heads = ReplyHeads()

        def make_connection() -> Connection:
            return Connection(loop, options.max_body_bytes, heads, self._pool.give_back, self._lost)

        self._connector = Connector(
            options.origin,
            context,
            make_connection,
            options.spread_addresses,
            options.addresses,
        )

    async def exchange(self, request: WireRequest, exchange: Exchange, timeouts: Timeouts) -> None:
        data = self._heads.render(request)
        deadline_ns = monotonic_ns() + ns_from_s(timeouts.total_s)
        connection = self._pool.take_idle()
        if connection is not None:
            exchange.reused = True
        else:
            opened = await self._obtain(exchange, timeouts, deadline_ns)
            if isinstance(opened, WireFailure):
                exchange.failure = opened
                return
            connection = opened
        await self._carry(connection, data, exchange, deadline_ns, timeouts)
        if exchange.failure is not None and may_be_sent_again(exchange):
            await self.send_again(data, exchange, deadline_ns, timeouts)

    # --- for those who send without a coroutine ----------------------------------------------

    def head(self, request: WireRequest) -> RequestHead:
        """The head of `request`, to be sent with any body."""
        return self._heads.head(request)

    def take_idle(self) -> Connection | None:
        """A connection at hand, to send one request on; None: `exchange` will open one.

        When its exchange has ended it goes back by itself. One that failed and
        `may_be_sent_again` is for `send_again`.
        """
        return self._pool.take_idle()

    def give_back(self, connection: Connection) -> None:
        """Nothing was sent on it after all."""
        self._pool.give_back(connection)

    # --- stopping ------------------------------------------------------------------------------

    async def shutdown(self) -> None:
        self._all_lost.clear()
        for connection in list(self._open):
            connection.abort()
        if self._open:
            # The event loop closes a socket in its next iterations, not in the call.
            async with asyncio.timeout(_SHUTDOWN_S):
                await self._all_lost.wait()

    async def _carry(
        self,
        connection: Connection,
        data: bytes,
        exchange: Exchange,
        deadline_ns: int,
        timeouts: Timeouts,
    ) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def ended(_: Exchange) -> None:
            if not waiter.done():
                waiter.set_result(None)

        connection.send(data, exchange, deadline_ns, timeouts, ended)
        try:
            await waiter
        except asyncio.CancelledError:
            connection.abandon(exchange)
            raise

    async def send_again(
        self, data: bytes, exchange: Exchange, deadline_ns: int, timeouts: Timeouts
    ) -> None:
        """Once more on a connection of its own: another idle one may be as dead as the first."""
        exchange.resent = True
        exchange.reused = False
        exchange.failure = None
        exchange.sent_ns = None
        if self._pool.take_place():
            connection = await self._connect(exchange, timeouts, deadline_ns)
        else:
            connection = await self._obtain(exchange, timeouts, deadline_ns)
        if isinstance(connection, WireFailure):
            exchange.failure = connection
            return
        await self._carry(connection, data, exchange, deadline_ns, timeouts)

    async def _obtain(
        self, exchange: Exchange, timeouts: Timeouts, deadline_ns: int
    ) -> Connection | WireFailure:
        """A connection when none is idle: opened, or waited for where their number is bounded."""
        if not self._pool.take_place():
            began_ns = monotonic_ns()
            try:
                async with asyncio.timeout((deadline_ns - began_ns) / NS_PER_S):
                    connection = await self._pool.wait()
            except TimeoutError:
                return WireFailure("timeout", texts.no_whole_reply(timeouts))
            finally:
                exchange.pool_wait_ns = monotonic_ns() - began_ns
            if connection is not None and not connection.is_closed:
                exchange.reused = True
                return connection
        return await self._connect(exchange, timeouts, deadline_ns)

    async def _connect(
        self, exchange: Exchange, timeouts: Timeouts, deadline_ns: int
    ) -> Connection | WireFailure:
        """Open a connection in the place that the caller took; without one the place is free."""
        left_s = max(0.0, (deadline_ns - monotonic_ns()) / NS_PER_S)
        opened: Connection | WireFailure | None = None
        try:
            if self._connector is None:
                raise InternalError("exchange() before startup()")
            opened = await self._connector.open(exchange, timeouts, left_s)
        finally:
            if isinstance(opened, Connection):
                self._open.add(opened)
            else:
                self._pool.free_place()
        return opened

    def _lost(self, connection: Connection) -> None:
        self._open.discard(connection)
        if not self._open:
            self._all_lost.set()


def may_be_sent_again(exchange: Exchange) -> bool:
    """A kept connection may have been closed by the target just as the request left.

    No byte of a reply came, so the target most likely never read it (RFC 9112 section 9.3.1); a
    new connection's failure, in contrast, is the target's answer.
    """
    return (
        exchange.reused
        and not exchange.resent
        and exchange.first_byte_ns is None
        and exchange.failure is not None
        and exchange.failure.category == "disconnected"
    )
