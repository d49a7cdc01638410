"""One request on its connection, with the faults that it gets."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from headway.core.clock import NS_PER_S
from headway.sim.answers import send_injected
from headway.sim.faults import Faults
from headway.sim.http import Connection, Request
from headway.sim.precise_timer import PreciseTimer


class Exchange(msgspec.Struct, frozen=True):
    """What a route is given."""

    request: Request
    connection: Connection
    faults: Faults

    def after_stall(self, timer: PreciseTimer, act: Callable[[], None]) -> None:
        """Act at once, or after the stall that is to come before the answer; perhaps never."""
        if self.faults.stall_at != 0:
            act()
        elif self.faults.stall_s < math.inf:
            due_ns = self.request.arrival_ns + int(self.faults.stall_s * NS_PER_S)
            timer.call_at(due_ns, lambda _: act())

    def send_broken(self) -> int | None:
        """What comes instead of an answer; returns its status, None for a broken connection."""
        if self.faults.reset_at is not None:
            self.connection.reset()
        elif self.faults.close_at is not None:
            self.connection.close()
        else:
            return send_injected(self.connection, self.faults)
        return None


Route = Callable[[Exchange], None]
"""Answers a request, or starts to."""
