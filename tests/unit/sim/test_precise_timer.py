from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from headway.core.clock import NS_PER_MS, monotonic_ns
from headway.sim import precise_timer
from headway.sim.precise_timer import PreciseTimer


@pytest.fixture(params=["timerfd", "loop"])
async def timer(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PreciseTimer]:
    monkeypatch.setattr(precise_timer, "_HAS_TIMERFD", request.param == "timerfd")
    timer = PreciseTimer(asyncio.get_running_loop())
    yield timer
    timer.close()


async def test_fires_in_order_of_due_times_and_never_early(timer: PreciseTimer) -> None:
    start_ns = monotonic_ns()
    fired: list[tuple[int, int]] = []
    done = asyncio.Event()

    def at(due_ns: int) -> None:
        def callback(now_ns: int) -> None:
            fired.append((due_ns, monotonic_ns()))
            if len(fired) == 4:
                done.set()

        timer.call_at(due_ns, callback)

    for delay_ms in (9, 3, 6, -5):
        at(start_ns + delay_ms * NS_PER_MS)
    await asyncio.wait_for(done.wait(), 10)
    assert [due for due, _ in fired] == sorted(due for due, _ in fired)
    assert all(at_ns >= due for due, at_ns in fired)


async def test_a_callback_is_called_again_when_it_says(timer: PreciseTimer) -> None:
    """Trap 29: each due time is absolute, so that lateness does not add up."""
    start_ns = monotonic_ns()
    due = [start_ns + k * NS_PER_MS for k in range(1, 21)]
    called: list[int] = []
    done = asyncio.Event()

    def callback(now_ns: int) -> int | None:
        called.append(now_ns)
        if len(called) == len(due):
            done.set()
            return None
        return due[len(called)]

    timer.call_at(due[0], callback)
    await asyncio.wait_for(done.wait(), 10)
    assert all(at_ns >= due_ns for at_ns, due_ns in zip(called, due, strict=True))


async def test_a_callback_that_adds_another_does_not_lose_it(timer: PreciseTimer) -> None:
    done = asyncio.Event()
    now_ns = monotonic_ns()
    timer.call_at(now_ns, lambda at_ns: timer.call_at(at_ns, lambda _: done.set()))
    await asyncio.wait_for(done.wait(), 10)


async def test_the_loop_runs_between_rounds_of_an_overloaded_timer(timer: PreciseTimer) -> None:
    rounds = 0
    stop = asyncio.Event()

    def always_due(now_ns: int) -> int | None:
        nonlocal rounds
        rounds += 1
        return None if stop.is_set() else now_ns - NS_PER_MS

    timer.call_at(monotonic_ns(), always_due)
    async with asyncio.timeout(10):
        while rounds < 3:  # noqa: ASYNC110  that this task runs in between is what is tested
            await asyncio.sleep(0)
    stop.set()
