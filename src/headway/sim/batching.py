"""A model of continuous batching, as engines like vLLM do it: pure, without clock or I/O.

Time passes in steps. A step decodes one token for every running sequence and spends what is left
of its token budget on the prompts of sequences that are being admitted (chunked prefill). The
caller asks for a plan (`plan_step`), lets its duration pass, and applies it (`complete_step`).

A sequence waits until a batch slot and blocks for its whole prompt are free, in order of arrival.
When a running one needs a block and there is none, the youngest running sequence is preempted: it
loses its blocks, goes back to the head of the queue and computes its tokens again (vLLM's
preemption by recomputation).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence as Tokens

import msgspec

from headway.sim.kv_blocks import BlockKey, BlockPool, block_key
from headway.sim.options import ModelOptions


class Sequence:
    """One reply in the making.

    Args:
        prompt: The prompt's tokens.
        reply: The reply's tokens, known ahead because this is a simulation.
    """

    def __init__(self, prompt: Tokens[str], reply: Tokens[str]) -> None:
        self.prompt = prompt
        self.reply = reply
        self.generated = 0
        self.computed = 0
        """Tokens whose keys and values are in the cache."""
        self.cached_tokens = 0
        """Prompt tokens found in the cache at first admission."""
        self.preemptions = 0
        self.shared: list[BlockKey] = []
        self.private_blocks = 0
        self.published_blocks = 0
        """Full blocks that were found in the cache or offered to it."""
        self._keys: list[BlockKey] = []

    @property
    def target(self) -> int:
        """Tokens that are known: those of the prompt and those generated."""
        return len(self.prompt) + self.generated

    @property
    def missing(self) -> int:
        """Tokens to prefill. The last generated one is not: its decode computes it."""
        if self.generated and self.computed >= self.target - 1:
            return 0
        return self.target - self.computed

    @property
    def finished(self) -> bool:
        return self.generated >= len(self.reply)

    @property
    def blocks(self) -> int:
        """Blocks it holds; 0 when it is not admitted."""
        return len(self.shared) + self.private_blocks

    def keys(self, tokens: int, block_tokens: int) -> list[BlockKey]:
        """The keys of the full blocks within its first `tokens` tokens, each computed once."""
        count = tokens // block_tokens
        while len(self._keys) < count:
            start = len(self._keys) * block_tokens
            before = self._keys[-1] if self._keys else 0
            self._keys.append(block_key(before, self._slice(start, start + block_tokens)))
        return self._keys[:count]

    def _slice(self, start: int, end: int) -> list[str]:
        prompt = len(self.prompt)
        return [*self.prompt[start:end], *self.reply[max(0, start - prompt) : max(0, end - prompt)]]


class Step(msgspec.Struct):
    """What one step does."""

    decode: list[Sequence]
    """Sequences that generate their next token."""
    prefill: list[tuple[Sequence, int]]
    """Sequences and how many of their tokens are computed."""
    duration_s: float


class BatchingStatistics(msgspec.Struct):
    """Counters since the start, and the state now."""

    running: int = 0
    waiting: int = 0
    kv_usage_ratio: float = 0.0
    preemptions: int = 0
    prefix_queried_tokens: int = 0
    prefix_hit_tokens: int = 0


class ContinuousBatching:
    """Decides what each step does.

    Args:
        options: The modelled hardware and its limits.
    """

    def __init__(self, options: ModelOptions) -> None:
        self._options = options
        self._block_tokens = options.block_tokens
        self._pool = BlockPool(max(1, options.kv_capacity_tokens // options.block_tokens))
        self._waiting: deque[Sequence] = deque()
        self._running: list[Sequence] = []
        self._counters = BatchingStatistics()

    @property
    def capacity_tokens(self) -> int:
        """The longest sequence that can ever be served."""
        return self._pool.capacity * self._block_tokens

    def statistics(self) -> BatchingStatistics:
        """The counters, with the state now."""
        return msgspec.structs.replace(
            self._counters,
            running=len(self._running),
            waiting=len(self._waiting),
            kv_usage_ratio=self._pool.held / self._pool.capacity,
        )

    def submit(self, sequence: Sequence) -> None:
        """Put `sequence` into the queue; it must fit `capacity_tokens`."""
        self._waiting.append(sequence)

    def withdraw(self, sequence: Sequence) -> None:
        """Forget a sequence that nobody waits for; without effect once it has ended."""
        if sequence in self._running:
            self._running.remove(sequence)
            self._free(sequence)
        elif sequence in self._waiting:
            self._waiting.remove(sequence)

    def plan_step(self) -> Step | None:
        """What the next step does; None when there is nothing to do."""
        decode, preempted = self._plan_decode()
        budget = self._options.max_batched_tokens - len(decode)
        prefill = self._plan_prefill(budget)
        if not preempted or not (decode or prefill):
            # Otherwise who was just preempted would be admitted again in the same breath.
            prefill += self._admit(budget - sum(count for _, count in prefill))
        if not decode and not prefill:
            return None
        return Step(decode, prefill, self._duration_s(decode, prefill))

    def complete_step(self, step: Step) -> list[Sequence]:
        """Apply a step whose time has passed.

        Returns:
            The sequences that have one more token, in order of admission.
        """
        advanced: list[Sequence] = []
        for sequence, count in step.prefill:
            sequence.computed += count
            if sequence.computed == sequence.target:
                advanced.append(sequence)
        for sequence in step.decode:
            sequence.computed += 1
            advanced.append(sequence)
        # A client may have left while the step ran.
        advanced = [sequence for sequence in advanced if sequence.blocks]
        for sequence in advanced:
            sequence.generated += 1
            self._publish(sequence)
            if sequence.finished:
                self._running.remove(sequence)
                self._free(sequence)
        return advanced

    def _plan_decode(self) -> tuple[list[Sequence], bool]:
        decode: list[Sequence] = []
        preempted = False
        for sequence in list(self._running):
            if sequence.missing or sequence not in self._running:
                continue
            while not self._make_room(sequence):
                preempted = True
                victim = self._running[-1]
                self._preempt(victim)
                if victim in decode:
                    decode.remove(victim)
                if victim is sequence:
                    break
            else:
                decode.append(sequence)
        return decode, preempted

    def _plan_prefill(self, budget: int) -> list[tuple[Sequence, int]]:
        plan: list[tuple[Sequence, int]] = []
        for sequence in self._running:
            if sequence.missing and budget > 0:
                count = min(sequence.missing, budget)
                plan.append((sequence, count))
                budget -= count
        return plan

    def _admit(self, budget: int) -> list[tuple[Sequence, int]]:
        plan: list[tuple[Sequence, int]] = []
        while self._waiting and budget > 0 and len(self._running) < self._options.max_batch:
            sequence = self._waiting[0]
            if not self._allot(sequence):
                break
            self._waiting.popleft()
            self._running.append(sequence)
            count = min(sequence.missing, budget)
            plan.append((sequence, count))
            budget -= count
        return plan

    def _allot(self, sequence: Sequence) -> bool:
        """Give a waiting sequence blocks for all its tokens, cached ones first."""
        hits: list[BlockKey] = []
        if self._options.prefix_cache:
            # At least one token must be computed, or there would be nothing to generate from.
            keys = sequence.keys(sequence.target - 1, self._block_tokens)
            hits = keys[: self._pool.match(keys)]
        needed = _blocks_for(sequence.target, self._block_tokens) - len(hits)
        if needed > self._pool.obtainable - self._pool.idle_among(hits):
            return False
        self._pool.hold(hits)
        self._pool.take(needed)
        sequence.shared, sequence.private_blocks = hits, needed
        sequence.published_blocks = len(hits)
        sequence.computed = len(hits) * self._block_tokens
        self._count_hits(sequence)
        return True

    def _count_hits(self, sequence: Sequence) -> None:
        if sequence.preemptions:
            return
        sequence.cached_tokens = min(sequence.computed, len(sequence.prompt))
        self._counters.prefix_queried_tokens += len(sequence.prompt)
        self._counters.prefix_hit_tokens += sequence.cached_tokens

    def _make_room(self, sequence: Sequence) -> bool:
        needed = _blocks_for(sequence.computed + 1, self._block_tokens) - sequence.blocks
        if needed <= 0:
            return True
        if not self._pool.take(needed):
            return False
        sequence.private_blocks += needed
        return True

    def _preempt(self, sequence: Sequence) -> None:
        self._running.remove(sequence)
        self._free(sequence)
        sequence.computed = 0
        sequence.preemptions += 1
        self._counters.preemptions += 1
        self._waiting.appendleft(sequence)

    def _publish(self, sequence: Sequence) -> None:
        """Make the blocks that are full by now available to equal prefixes."""
        if not self._options.prefix_cache:
            return
        keys = sequence.keys(sequence.computed, self._block_tokens)
        for key in keys[sequence.published_blocks :]:
            # Refused where another computed the same at the same time: the double stays private.
            if self._pool.publish(key):
                sequence.shared.append(key)
                sequence.private_blocks -= 1
        sequence.published_blocks = max(sequence.published_blocks, len(keys))

    def _free(self, sequence: Sequence) -> None:
        self._pool.release(sequence.shared, sequence.private_blocks)
        sequence.shared, sequence.private_blocks = [], 0

    def _duration_s(self, decode: list[Sequence], prefill: list[tuple[Sequence, int]]) -> float:
        options = self._options
        tokens = sum(count for _, count in prefill)
        batch = len(decode) + len(prefill)
        return (
            options.step_base_s
            + options.step_per_sequence_s * batch
            + tokens / options.prefill_tokens_per_s
        )


def _blocks_for(tokens: int, block_tokens: int) -> int:
    return -(-tokens // block_tokens)
