"""Requests without a coroutine: what the built-in HTTP backends offer beside the four methods.

A request that a coroutine carries costs a future, a wake-up, and frames to suspend and to resume:
about a third of what a small request costs in all. Where a connection is at hand there is nothing
to await: sending is one call, and the end of the exchange is another one. Whatever has to wait (no
connection yet, a request to send again) stays with coroutines, so that there is one way to open a
connection and one to send again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from headway.backends.backend import Answer, Backend, Call, Message, Progress
from headway.core.clock import monotonic_ns, ns_from_s
from headway.wire.connection import Connection
from headway.wire.exchange import Exchange, Timeouts, WireRequest
from headway.wire.fast import FastTransport, may_be_sent_again


class Asker(Protocol):
    """What a backend knows of its requests."""

    def new_exchange(self) -> Exchange:
        """An exchange for one request."""
        ...

    def body(self, call: Call, history: tuple[Message, ...]) -> bytes:
        """What is sent.

        Raises:
            InputError: the call lacks something.
        """
        ...

    def read(self, exchange: Exchange, progress: Progress) -> Answer:
        """What came back, whole or not; fills `progress`."""
        ...


class DirectPath:
    """Sends the requests of one backend by calls.

    Args:
        asker: The backend.
        transport: Its transport.
        question: What all its requests have in common: everything but the body.
        timeouts: Its deadlines.
    """

    def __init__(
        self, asker: Asker, transport: FastTransport, question: WireRequest, timeouts: Timeouts
    ) -> None:
        self._new_exchange = asker.new_exchange
        self._body = asker.body
        self._transport = transport
        self._take = transport.take_idle
        self._head = transport.head(question)
        self._timeouts = timeouts
        self._total_ns = ns_from_s(timeouts.total_s)
        self.read = asker.read
        """(exchange, progress) to the answer: what came back, whole or not."""

    def begin(
        self,
        call: Call,
        history: tuple[Message, ...],
        owner: object,
        on_end: Callable[[Exchange], None],
    ) -> Exchange | None:
        """Send a request if that can be done at once.

        Args:
            call: What is asked.
            history: What was said before.
            owner: Kept as `Exchange.owner`.
            on_end: Called with the exchange when it is over, never from within this call.

        Returns:
            The exchange under way; None when nothing was sent, and `resolve` has to be awaited.

        Raises:
            InputError: nothing was sent; `resolve` says the same as a failure.
        """
        connection = self._take()
        if connection is None:
            return None
        try:
            data = self._head.with_body(self._body(call, history))
        except BaseException:
            self._transport.give_back(connection)
            raise
        exchange = self._new_exchange()
        exchange.owner = owner
        exchange.carrier = connection
        exchange.reused = True
        exchange.data = data
        deadline_ns = monotonic_ns() + self._total_ns
        connection.send(data, exchange, deadline_ns, self._timeouts, on_end)
        return exchange

    def must_be_finished(self, exchange: Exchange) -> bool:
        """Whether an exchange that ended is to be sent once more, by `finish`."""
        return exchange.failure is not None and may_be_sent_again(exchange)

    async def finish(self, exchange: Exchange) -> None:
        """Send it once more; returns when that is over, however it ended."""
        assert exchange.sent_ns is not None
        deadline_ns = exchange.sent_ns + self._total_ns
        await self._transport.send_again(exchange.data, exchange, deadline_ns, self._timeouts)

    def abandon(self, exchange: Exchange) -> bool:
        """Nobody waits for it any more: `on_end` is not called. False: not under way here."""
        carrier = exchange.carrier
        return isinstance(carrier, Connection) and carrier.abandon(exchange)


def direct_path_of(backend: Backend) -> DirectPath | None:
    """The direct path that a backend offers; None: its four methods are all there is."""
    found = getattr(backend, "direct", None)
    return found if isinstance(found, DirectPath) else None
