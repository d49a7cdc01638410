"""The exact engine: tokens at given times after arrival, however many requests there are."""

from __future__ import annotations

import random
from itertools import accumulate

from headway.core.clock import NS_PER_S
from headway.core.distributions import Constant, Distribution
from headway.sim.batching import BatchingStatistics
from headway.sim.generation import Generation
from headway.sim.options import ExactOptions
from headway.sim.precise_timer import PreciseTimer


class ExactEngine:
    """Draws each reply's times at its arrival; every token is due at an absolute time.

    Args:
        timing: What to draw from, in seconds.
        timer: Wakes the engine.
        seed: The same seed gives the same times to the same order of arrivals.
    """

    def __init__(self, timing: ExactOptions, timer: PreciseTimer, seed: int) -> None:
        self._timing = timing
        self._timer = timer
        self._rng = random.Random(seed)
        self.immediate = _always(timing.ttft_s, 0) and _always(timing.itl_s, 0)

    def start(self, generation: Generation) -> None:
        """Begin to make the tokens of `generation`."""
        due_ns = self._due_times(generation)
        if generation.delivery.streamed:
            self._timer.call_at(due_ns[0], _Pace(generation, due_ns).advance)
        else:
            self._timer.call_at(due_ns[-1], _Pace(generation, due_ns).advance)

    def refusal(self, prompt_tokens: int, output_tokens: int) -> str | None:
        """None: it serves any length."""
        return None

    def statistics(self) -> BatchingStatistics:
        """Nothing: here no request waits for another."""
        return BatchingStatistics()

    def cancel(self, generation: Generation) -> None:
        """Nobody waits for it any more; its pace notices by itself."""

    def _due_times(self, generation: Generation) -> list[int]:
        timing, rng = self._timing, self._rng
        first_ns = generation.arrival_ns + round(timing.ttft_s.draw(rng) * NS_PER_S)
        gaps = generation.output_tokens - 1
        if isinstance(timing.itl_s, Constant):
            gap_ns = round(timing.itl_s.value * NS_PER_S)
            if gap_ns:
                return list(range(first_ns, first_ns + gap_ns * gaps + 1, gap_ns))
            return [first_ns] * (gaps + 1)
        draws = [round(timing.itl_s.draw(rng) * NS_PER_S) for _ in range(gaps)]
        return list(accumulate(draws, initial=first_ns))


class _Pace:
    """One reply's absolute due times."""

    __slots__ = ("_due_ns", "_generation", "_made")

    def __init__(self, generation: Generation, due_ns: list[int]) -> None:
        self._generation = generation
        self._due_ns = due_ns
        self._made = 0

    def advance(self, now_ns: int) -> int | None:
        """Make every token that is due by now; returns when the next one is."""
        delivery = self._generation.delivery
        if not delivery.open:
            return None
        due_ns, made = self._due_ns, self._made + 1
        while made < len(due_ns) and due_ns[made] <= now_ns:
            made += 1
        self._made = made
        delivery.ready(made, now_ns)
        return due_ns[made] if made < len(due_ns) else None


def _always(distribution: Distribution, value: float) -> bool:
    return isinstance(distribution, Constant) and distribution.value == value
