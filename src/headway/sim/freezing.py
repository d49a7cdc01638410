"""Freezes: the whole process stands still, as when a real server's event loop is blocked."""

from __future__ import annotations

import time
from collections.abc import Iterable

import msgspec

from headway.core.clock import NS_PER_S, monotonic_ns
from headway.sim.answers import send_answer, send_refusal
from headway.sim.dialect import cannot_read
from headway.sim.exchange import Exchange
from headway.sim.messages import Refusal
from headway.sim.options import FreezeOptions
from headway.sim.precise_timer import PreciseTimer

MAX_FREEZE_S = 600.0
_SLICE_S = 0.02


class _Body(msgspec.Struct):
    seconds: float
    after_s: float = 0.0


class Freezer:
    """Stops everything for a while, at planned times or on demand.

    Args:
        freezes: When, counted from the first request that asks the model for something.
        timer: Wakes it.
    """

    def __init__(self, freezes: Iterable[FreezeOptions], timer: PreciseTimer) -> None:
        self._freezes = tuple(freezes)
        self._timer = timer
        self._thawed = False

    def thaw(self) -> None:
        """End the freeze under way, from a signal's handler, and have no other."""
        self._thawed = True

    def first_request(self, arrival_ns: int) -> None:
        """Time zero of the planned freezes."""
        for freeze in self._freezes:
            self._plan(arrival_ns + int(freeze.at_s * NS_PER_S), freeze.seconds)

    def answer(self, exchange: Exchange) -> None:
        """The route `POST /sim/freeze {"seconds": 2, "after_s": 0}`: answers, then freezes."""
        try:
            body = msgspec.json.decode(exchange.request.body, type=_Body)
        except msgspec.MsgspecError as error:
            send_refusal(exchange.connection, cannot_read(error))
            return
        if not 0 < body.seconds <= MAX_FREEZE_S:
            text = f"'seconds' is above 0 and at most {MAX_FREEZE_S:g}."
            send_refusal(exchange.connection, Refusal(400, text, param="seconds"))
            return
        # A little later even without a delay: the answer must leave before.
        from_ns = monotonic_ns() + max(int(body.after_s * NS_PER_S), NS_PER_S // 100)
        self._plan(from_ns, body.seconds)
        span = {"from_ns": from_ns, "to_ns": from_ns + int(body.seconds * NS_PER_S)}
        send_answer(exchange.connection, 200, msgspec.json.encode(span))

    def _plan(self, from_ns: int, seconds: float) -> None:
        to_ns = from_ns + int(seconds * NS_PER_S)

        def freeze(now_ns: int) -> None:
            # Blocking is the point: no read, no write, no accept, no timer. In slices, so that
            # a signal's handler can end it.
            while not self._thawed and (left_ns := to_ns - monotonic_ns()) > 0:
                time.sleep(min(left_ns / NS_PER_S, _SLICE_S))

        self._timer.call_at(from_ns, freeze)
