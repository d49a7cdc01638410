"""The deadlines of the exchange that a connection carries, watched with one lazy timer.

A deadline only ever moves later while an exchange runs, and the next exchange's are later still.
So one timer for each connection is enough: when it fires early it is set again, which happens once
per deadline's length instead of once per request or read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headway.core.clock import NS_PER_S, monotonic_ns, ns_from_s
from headway.wire import texts
from headway.wire.exchange import Timeouts

_NEVER_NS = 2**63 - 1
# uvloop's timers count whole milliseconds: without this one they fire before the deadline, again
# and again, until it comes.
_ROUNDING_S = 0.001


class Deadlines:
    """Calls `expire(text)` when a deadline of the current exchange has passed."""

    __slots__ = (
        "_expire",
        "_first_token_ns",
        "_idle_ns",
        "_loop",
        "_timeouts",
        "_timer",
        "_timer_ns",
        "_total_ns",
        "last_read_ns",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, expire: Callable[[str], None]) -> None:
        self._loop = loop
        self._expire = expire
        self._timeouts = Timeouts()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ns = _NEVER_NS
        self._total_ns = _NEVER_NS
        self._first_token_ns = _NEVER_NS
        self._idle_ns: int | None = None
        self.last_read_ns: int | None = None
        """Of the current exchange; the connection sets it at every read after the first."""

    def begin(self, sent_ns: int, total_deadline_ns: int, timeouts: Timeouts) -> None:
        """An exchange was sent."""
        self._timeouts = timeouts
        self._total_ns = next_ns = total_deadline_ns
        self.last_read_ns = None
        if timeouts.first_token_s is None:
            self._first_token_ns = _NEVER_NS
        else:
            self._first_token_ns = sent_ns + ns_from_s(timeouts.first_token_s)
            next_ns = min(next_ns, self._first_token_ns)
        self._idle_ns = None if timeouts.idle_s is None else ns_from_s(timeouts.idle_s)
        if next_ns < self._timer_ns:
            self._set_timer(next_ns)

    def first_read(self, now_ns: int) -> None:
        """The idle deadline begins to count, and may be nearer than any before."""
        self.last_read_ns = now_ns
        if self._idle_ns is None:
            return
        next_ns = self._next_ns()
        if next_ns < self._timer_ns:
            self._set_timer(next_ns)

    def token_came(self) -> None:
        """The first token is there: its deadline is gone."""
        self._first_token_ns = _NEVER_NS

    def end(self) -> None:
        """The exchange is over. The timer stays: the next exchange most likely wants it later."""
        self._total_ns = _NEVER_NS
        self._first_token_ns = _NEVER_NS
        self._idle_ns = None

    def close(self) -> None:
        """The connection is over."""
        self.end()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _next_ns(self) -> int:
        next_ns = min(self._total_ns, self._first_token_ns)
        if self._idle_ns is not None and self.last_read_ns is not None:
            next_ns = min(next_ns, self.last_read_ns + self._idle_ns)
        return next_ns

    def _set_timer(self, at_ns: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ns = at_ns
        delay_s = (at_ns - monotonic_ns()) / NS_PER_S + _ROUNDING_S
        self._timer = self._loop.call_later(max(0.0, delay_s), self._fired)

    def _fired(self) -> None:
        self._timer = None
        self._timer_ns = _NEVER_NS
        next_ns = self._next_ns()
        if next_ns == _NEVER_NS:
            return
        if next_ns > monotonic_ns():
            self._set_timer(next_ns)
        else:
            self._expire(self._passed())

    def _passed(self) -> str:
        now_ns, timeouts = monotonic_ns(), self._timeouts
        if now_ns >= self._total_ns:
            return texts.no_whole_reply(timeouts)
        if now_ns >= self._first_token_ns:
            return texts.no_first_token(timeouts)
        return texts.idle(timeouts)
