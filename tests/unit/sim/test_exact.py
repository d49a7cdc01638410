from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from headway.core.clock import NS_PER_MS, monotonic_ns
from headway.sim.exact import ExactEngine
from headway.sim.generation import Generation
from headway.sim.options import ExactOptions
from headway.sim.precise_timer import PreciseTimer


class Recorder:
    """Stands where a delivery does and notes what it is told."""

    def __init__(self, tokens: int, streamed: bool = True) -> None:
        self.streamed = streamed
        self.open = True
        self.told: list[tuple[int, int]] = []
        self.done = asyncio.Event()
        self._tokens = tokens

    def ready(self, tokens: int, now_ns: int) -> None:
        self.told.append((tokens, now_ns))
        if tokens == self._tokens:
            self.done.set()


def generation(recorder: Any, tokens: int) -> Generation:
    return Generation(
        delivery=recorder, arrival_ns=monotonic_ns(), prompt=["x"], output_tokens=tokens
    )


async def test_tokens_come_at_absolute_times_after_arrival() -> None:
    timer = PreciseTimer(asyncio.get_running_loop())
    engine = ExactEngine(ExactOptions(ttft_s=0.01, itl_s=0.002), timer, seed=0)
    recorder = Recorder(5)
    made = generation(recorder, 5)
    engine.start(made)
    await asyncio.wait_for(recorder.done.wait(), 10)
    timer.close()
    for tokens, now_ns in recorder.told:
        due_ns = made.arrival_ns + 10 * NS_PER_MS + (tokens - 1) * 2 * NS_PER_MS
        assert now_ns >= due_ns
    assert [tokens for tokens, _ in recorder.told] == sorted({t for t, _ in recorder.told})


async def test_a_reply_in_one_piece_is_told_once() -> None:
    timer = PreciseTimer(asyncio.get_running_loop())
    engine = ExactEngine(ExactOptions(ttft_s=0.001, itl_s=0.001), timer, seed=0)
    recorder = Recorder(6, streamed=False)
    made = generation(recorder, 6)
    engine.start(made)
    await asyncio.wait_for(recorder.done.wait(), 10)
    timer.close()
    assert len(recorder.told) == 1
    assert recorder.told[0][1] >= made.arrival_ns + 6 * NS_PER_MS


async def test_the_same_seed_draws_the_same_times() -> None:
    timer = PreciseTimer(asyncio.get_running_loop())
    timing = ExactOptions(ttft_s="0.01±0.005", itl_s="0.001..0.003")
    draws = []
    for seed in (1, 1, 2):
        engine = ExactEngine(timing, timer, seed)
        made = generation(Recorder(4), 4)
        draws.append([due - made.arrival_ns for due in engine._due_times(made)])
    timer.close()
    assert draws[0] == draws[1] != draws[2]
    assert all(1_000_000 <= b - a <= 3_000_000 for a, b in pairwise(draws[0]))
