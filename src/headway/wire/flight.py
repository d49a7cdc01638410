"""One exchange under way on a transport that tells its progress by callbacks."""

from __future__ import annotations

import asyncio

from headway.core.clock import monotonic_ns
from headway.wire import texts
from headway.wire.exchange import Exchange, Timeouts


class Flight:
    """Stamps an exchange, and moves its one deadline as it gets on."""

    def __init__(self, exchange: Exchange, timeouts: Timeouts) -> None:
        self.exchange = exchange
        self._timeouts = timeouts
        self._total_at_s = _now_s() + timeouts.total_s
        self._connect_at_s: float | None = None
        self._token_at_s: float | None = None
        self._idle_at_s: float | None = None
        self._scope = asyncio.timeout_at(self._total_at_s)
        self._text = ""
        self._began_ns = 0

    def deadlines(self) -> asyncio.Timeout:
        """The scope of one sending; raises TimeoutError when a deadline passes."""
        self._connect_at_s = self._token_at_s = self._idle_at_s = None
        at_s, self._text = self._next_deadline()
        self._scope = asyncio.timeout_at(at_s)
        return self._scope

    def passed_deadline(self) -> str:
        """Which one it was, in words."""
        return self._text

    def may_be_sent_again(self) -> bool:
        """A kept connection may have been closed just as the request left, see the fast one."""
        exchange = self.exchange
        return (
            exchange.reused
            and not exchange.resent
            and exchange.first_byte_ns is None
            and exchange.failure is not None
            and exchange.failure.category == "disconnected"
        )

    def begin_again(self) -> None:
        """Forget the first sending."""
        self.exchange.resent = True
        self.exchange.reused = False
        self.exchange.failure = None
        self.exchange.sent_ns = None

    # --- as it happens ---------------------------------------------------------------------------

    def queued(self) -> None:
        self._note_second_sending()
        self._began_ns = monotonic_ns()

    def dequeued(self) -> None:
        self.exchange.pool_wait_ns = monotonic_ns() - self._began_ns

    def connecting(self) -> None:
        self._note_second_sending()
        self._began_ns = monotonic_ns()
        self._connect_at_s = _after(self._timeouts.connect_s)
        self._set_deadline()

    def connected(self) -> None:
        self.exchange.connect_ns = monotonic_ns() - self._began_ns
        self._connect_at_s = None
        self._set_deadline()

    def reused(self) -> None:
        self._note_second_sending()
        self.exchange.reused = True

    def sent(self) -> None:
        self.exchange.sent_ns = monotonic_ns()
        self._token_at_s = _after(self._timeouts.first_token_s)
        self._set_deadline()

    def read_head(self, status: int, raw_headers: dict[bytes, bytes]) -> None:
        exchange = self.exchange
        exchange.first_byte_ns = monotonic_ns()
        exchange.status = status
        exchange.raw_headers = raw_headers
        self._idle_at_s = _after(self._timeouts.idle_s)
        self._set_deadline()

    def read_body(self, piece: bytes) -> None:
        exchange, now_ns = self.exchange, monotonic_ns()
        exchange.reads.append((now_ns, piece))
        exchange.body_bytes += len(piece)
        if self._token_at_s is not None and (
            exchange.watch is None or exchange.watch(now_ns, piece)
        ):
            self._token_at_s = None
        self._idle_at_s = _after(self._timeouts.idle_s)
        self._set_deadline()

    # --- inside ----------------------------------------------------------------------------------

    def _note_second_sending(self) -> None:
        """The library itself sends idempotent requests again; that too must be seen (`resent`)."""
        if self.exchange.sent_ns is not None:
            self.begin_again()

    def _set_deadline(self) -> None:
        if not self._scope.expired():
            at_s, self._text = self._next_deadline()
            if at_s != self._scope.when():
                self._scope.reschedule(at_s)

    def _next_deadline(self) -> tuple[float, str]:
        timeouts = self._timeouts
        nearest = (self._total_at_s, texts.no_whole_reply(timeouts))
        for at_s, text in (
            (self._connect_at_s, texts.no_connection(timeouts)),
            (self._token_at_s, texts.no_first_token(timeouts)),
            (self._idle_at_s, texts.idle(timeouts)),
        ):
            if at_s is not None and at_s < nearest[0]:
                nearest = (at_s, text)
        return nearest


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _after(limit_s: float | None) -> float | None:
    return None if limit_s is None else _now_s() + limit_s
