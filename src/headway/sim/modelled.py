"""The modelled engine: lets the steps of a `ContinuousBatching` pass in real time."""

from __future__ import annotations

from functools import lru_cache

from headway.core.clock import NS_PER_S
from headway.sim.batching import BatchingStatistics, ContinuousBatching, Sequence, Step
from headway.sim.generation import Generation
from headway.sim.options import ModelOptions
from headway.sim.precise_timer import PreciseTimer
from headway.sim.reply import WORDS


class ModelledEngine:
    """Runs one step after the other while there is work.

    Each step begins when the one before was to end, not when that was noticed, so that a late
    wake-up does not slow the model down.

    Args:
        options: The modelled hardware.
        timer: Ends the steps.
    """

    immediate = False

    def __init__(self, options: ModelOptions, timer: PreciseTimer) -> None:
        self._batching = ContinuousBatching(options)
        self._timer = timer
        self._step: Step | None = None
        self._ends_ns = 0
        self._sequences: dict[Generation, Sequence] = {}
        self._generations: dict[Sequence, Generation] = {}

    def start(self, generation: Generation) -> None:
        """Put it into the queue; the next step may admit it."""
        sequence = Sequence(generation.prompt, _reply_tokens(generation.output_tokens))
        self._sequences[generation] = sequence
        self._generations[sequence] = generation
        self._batching.submit(sequence)
        if self._step is None:
            ends_ns = self._begin(generation.arrival_ns)
            if ends_ns is not None:
                self._timer.call_at(ends_ns, self._complete)

    def cancel(self, generation: Generation) -> None:
        """Take it out of the queue or the batch."""
        sequence = self._sequences.pop(generation, None)
        if sequence is not None:
            del self._generations[sequence]
            self._batching.withdraw(sequence)

    def refusal(self, prompt_tokens: int, output_tokens: int) -> str | None:
        """Why a reply of this size could never be made, if so."""
        capacity = self._batching.capacity_tokens
        if prompt_tokens + output_tokens <= capacity:
            return None
        return (
            f"The key-value cache holds {capacity} tokens; {prompt_tokens} of the prompt and "
            f"{output_tokens} of the reply do not fit."
        )

    def statistics(self) -> BatchingStatistics:
        """Its queue, batch and cache."""
        return self._batching.statistics()

    def _begin(self, at_ns: int) -> int | None:
        """Begin a step, if there is work; returns when it ends."""
        self._step = self._batching.plan_step()
        if self._step is None:
            return None
        self._ends_ns = at_ns + round(self._step.duration_s * NS_PER_S)
        return self._ends_ns

    def _complete(self, now_ns: int) -> int | None:
        assert self._step is not None
        ended_ns = self._ends_ns
        for sequence in self._batching.complete_step(self._step):
            generation = self._generations[sequence]
            generation.delivery.truth.cached_tokens = sequence.cached_tokens
            if sequence.finished:
                del self._sequences[generation], self._generations[sequence]
            generation.delivery.ready(sequence.generated, now_ns)
        return self._begin(ended_ns)


@lru_cache(1024)
def _reply_tokens(count: int) -> tuple[str, ...]:
    return tuple(WORDS[k % len(WORDS)] for k in range(count))
