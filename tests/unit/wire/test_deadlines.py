"""One timer serves a connection's exchanges, and is set anew only when a deadline is nearer."""

from __future__ import annotations

import asyncio

from headway.core.clock import monotonic_ns, ns_from_s
from headway.wire.deadlines import Deadlines
from headway.wire.exchange import Timeouts


class CountingLoop:
    """The running loop, counting timers."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.timers = 0

    def call_later(self, *args: object) -> asyncio.TimerHandle:
        self.timers += 1
        return self.loop.call_later(*args)  # type: ignore[arg-type]


async def test_a_thousand_exchanges_set_one_timer() -> None:
    loop = CountingLoop()
    deadlines = Deadlines(loop, lambda _: None)  # type: ignore[arg-type]
    limits = Timeouts(first_token_s=30, idle_s=60, total_s=600)
    for _ in range(1000):
        now_ns = monotonic_ns()
        deadlines.begin(now_ns, now_ns + ns_from_s(limits.total_s), limits)
        deadlines.first_read(now_ns)
        deadlines.end()
    deadlines.close()
    assert loop.timers == 1


async def test_a_nearer_deadline_moves_the_timer_forward() -> None:
    expired: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    deadlines = Deadlines(asyncio.get_running_loop(), expired.set_result)
    now_ns = monotonic_ns()
    deadlines.begin(now_ns, now_ns + ns_from_s(600), Timeouts(total_s=600))
    deadlines.end()
    deadlines.begin(now_ns, now_ns + ns_from_s(0.05), Timeouts(total_s=0.05))
    assert await asyncio.wait_for(expired, 5) == "no whole reply within 0.05 s (total)"
    assert monotonic_ns() - now_ns >= ns_from_s(0.05)
    deadlines.close()


async def test_reads_put_the_idle_deadline_off() -> None:
    expired: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    deadlines = Deadlines(asyncio.get_running_loop(), expired.set_result)
    now_ns = monotonic_ns()
    deadlines.begin(now_ns, now_ns + ns_from_s(600), Timeouts(idle_s=0.1, total_s=600))
    deadlines.first_read(now_ns)
    # A read just before the first deadline; whoever slept until then could come too late.
    deadlines.last_read_ns = last_ns = now_ns + ns_from_s(0.06)
    assert await asyncio.wait_for(expired, 5) == "nothing more came for 0.1 s (idle)"
    assert monotonic_ns() - last_ns >= ns_from_s(0.1)
    deadlines.close()


async def test_an_ended_exchange_expires_no_more() -> None:
    expired: list[str] = []
    deadlines = Deadlines(asyncio.get_running_loop(), expired.append)
    now_ns = monotonic_ns()
    deadlines.begin(now_ns, now_ns + ns_from_s(0.02), Timeouts(total_s=0.02))
    deadlines.end()
    await asyncio.sleep(0.05)
    assert expired == []
