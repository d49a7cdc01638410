"""A deadline that has passed stays passed, whatever else its exchange does afterwards."""

from __future__ import annotations

import asyncio

import pytest

from headway.wire.exchange import Exchange, Timeouts
from headway.wire.flight import Flight

DEADLINE_S = 20.0


async def wait_in_vain(flight: Flight, *steps: str, at_the_end: str | None = None) -> None:
    """What the library below does: these steps, then nothing until the deadline ends it."""
    async with flight.deadlines():
        for step in steps:
            getattr(flight, step)()
        try:
            await asyncio.sleep(DEADLINE_S)
        finally:
            if at_the_end is not None:
                getattr(flight, at_the_end)()


async def test_what_happens_after_a_passed_deadline_does_not_move_it() -> None:
    """The library may still tell of a step while it is being cancelled."""
    exchange = Exchange()
    flight = Flight(exchange, Timeouts(connect_s=0.01, total_s=DEADLINE_S))
    with pytest.raises(TimeoutError):
        await wait_in_vain(flight, "connecting", at_the_end="connected")
    assert exchange.connect_ns is not None
    assert flight.passed_deadline() == "no connection within 0.01 s"


@pytest.mark.parametrize(
    ("steps", "named"),
    [
        (["connecting"], "no connection within 0.01 s"),
        (["connecting", "connected", "sent"], "no first token within 0.02 s"),
    ],
)
async def test_the_deadline_that_is_nearest_is_the_one_that_is_named(
    steps: list[str], named: str
) -> None:
    flight = Flight(Exchange(), Timeouts(connect_s=0.01, first_token_s=0.02, total_s=DEADLINE_S))
    with pytest.raises(TimeoutError):
        await wait_in_vain(flight, *steps)
    assert flight.passed_deadline() == named
