from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.sim.batching import ContinuousBatching, Sequence
from headway.sim.options import ModelOptions
from headway.sim.reply import WORDS


def options(**changes: Any) -> ModelOptions:
    defaults: dict[str, Any] = {
        "prefill_tokens_per_s": 1000,
        "step_base_s": 0.01,
        "step_per_sequence_s": 0.001,
        "max_batch": 8,
        "max_batched_tokens": 100,
        "kv_capacity_tokens": 1600,
        "block_tokens": 4,
    }
    return ModelOptions(**(defaults | changes))


def sequence(prompt: int, reply: int, name: str = "p") -> Sequence:
    return Sequence(
        [f"{name}{k}" for k in range(prompt)], [WORDS[k % len(WORDS)] for k in range(reply)]
    )


def run(batching: ContinuousBatching, steps: int = 100_000) -> list[float]:
    """Run until idle; returns each step's duration."""
    durations: list[float] = []
    while (step := batching.plan_step()) is not None:
        durations.append(step.duration_s)
        batching.complete_step(step)
        assert len(durations) <= steps, "the model does not come to rest"
    return durations


def test_one_sequence_prefills_and_then_decodes_a_token_a_step() -> None:
    batching = ContinuousBatching(options())
    one = sequence(prompt=50, reply=4)
    batching.submit(one)
    durations = run(batching)
    # The prefill step makes the first token; each later step one more.
    assert durations == pytest.approx([0.01 + 0.001 + 50 / 1000] + [0.011] * 3)
    assert one.finished
    assert batching.statistics().kv_usage_ratio == 0


def test_a_step_takes_longer_the_more_sequences_it_decodes() -> None:
    batching = ContinuousBatching(options())
    for k in range(5):
        batching.submit(sequence(10, 3, name=f"s{k}-"))
    assert run(batching)[-1] == pytest.approx(0.01 + 5 * 0.001)


def test_a_long_prompt_is_prefilled_in_chunks_while_others_decode() -> None:
    batching = ContinuousBatching(options())
    first, long = sequence(10, 10), sequence(250, 2, name="long")
    batching.submit(first)
    step = batching.plan_step()
    assert step is not None
    batching.complete_step(step)
    batching.submit(long)
    chunks = []
    while not long.generated:
        step = batching.plan_step()
        assert step is not None
        chunks += [count for who, count in step.prefill if who is long]
        assert first in step.decode
        batching.complete_step(step)
    assert chunks == [99, 99, 52]


def test_a_full_batch_makes_the_others_wait_in_order() -> None:
    batching = ContinuousBatching(options(max_batch=2))
    waiting = [sequence(4, 3, name=f"s{k}-") for k in range(4)]
    for one in waiting:
        batching.submit(one)
    step = batching.plan_step()
    assert step is not None
    assert [who for who, _ in step.prefill] == waiting[:2]
    assert batching.statistics().waiting == 2
    assert batching.statistics().running == 2


def test_a_cache_without_room_makes_the_others_wait() -> None:
    batching = ContinuousBatching(options(kv_capacity_tokens=40))
    first, second = sequence(24, 4), sequence(24, 4, name="q")
    batching.submit(first)
    batching.submit(second)
    step = batching.plan_step()
    assert step is not None
    assert [who for who, _ in step.prefill] == [first]
    run(batching)
    assert second.finished


def test_the_youngest_is_preempted_when_a_running_one_needs_its_room() -> None:
    batching = ContinuousBatching(options(kv_capacity_tokens=48))
    old, young = sequence(16, 20), sequence(16, 20, name="q")
    batching.submit(old)
    batching.submit(young)
    run(batching)
    assert (old.preemptions, young.preemptions) == (0, 1)
    assert old.finished
    assert young.finished
    assert batching.statistics().preemptions == 1


def test_an_equal_prefix_is_found_in_the_cache_and_costs_no_prefill() -> None:
    batching = ContinuousBatching(options())
    first, second = sequence(42, 1), sequence(42, 1)
    batching.submit(first)
    cold = run(batching)
    batching.submit(second)
    warm = run(batching)
    assert (first.cached_tokens, second.cached_tokens) == (0, 40)
    assert cold[0] - warm[0] == pytest.approx(40 / 1000)
    state = batching.statistics()
    assert (state.prefix_queried_tokens, state.prefix_hit_tokens) == (84, 40)


def test_a_whole_prompt_in_the_cache_still_computes_its_last_token() -> None:
    batching = ContinuousBatching(options())
    for _ in range(2):
        last = sequence(40, 1)
        batching.submit(last)
        run(batching)
    assert last.cached_tokens == 36


def test_without_prefix_cache_nothing_is_found() -> None:
    batching = ContinuousBatching(options(prefix_cache=False))
    for _ in range(2):
        last = sequence(40, 2)
        batching.submit(last)
        run(batching)
    assert last.cached_tokens == 0


def test_the_next_turn_finds_prompt_and_reply_of_the_last() -> None:
    batching = ContinuousBatching(options())
    first = sequence(20, 12)
    batching.submit(first)
    run(batching)
    turn = Sequence([*first.prompt, *first.reply, "and", "now"], ["yes"])
    batching.submit(turn)
    run(batching)
    # The last generated token was never computed, so its block is not full.
    assert turn.cached_tokens == 28


def test_a_sequence_whose_client_left_gives_everything_back() -> None:
    batching = ContinuousBatching(options())
    gone, stays = sequence(20, 50), sequence(20, 3, name="q")
    batching.submit(gone)
    batching.submit(stays)
    step = batching.plan_step()
    assert step is not None
    batching.withdraw(gone)
    assert batching.complete_step(step) == [stays]
    run(batching)
    assert batching.statistics().kv_usage_ratio == 0
    batching.withdraw(gone)


_SHAPES = st.lists(
    st.tuples(st.integers(1, 40), st.integers(1, 30), st.sampled_from("abc")), max_size=12
)


@settings(max_examples=150, deadline=None)
@given(shapes=_SHAPES, capacity=st.integers(80, 200), batch=st.integers(1, 6), cache=st.booleans())
def test_every_sequence_is_finished_and_no_block_is_lost(
    shapes: list[tuple[int, int, str]], capacity: int, batch: int, cache: bool
) -> None:
    batching = ContinuousBatching(
        options(
            kv_capacity_tokens=capacity, max_batch=batch, max_batched_tokens=16, prefix_cache=cache
        )
    )
    sequences = [sequence(prompt, reply, name) for prompt, reply, name in shapes]
    for one in sequences:
        batching.submit(one)
    while (step := batching.plan_step()) is not None:
        batching.complete_step(step)
        state = batching.statistics()
        assert state.running <= batch
        assert 0 <= state.kv_usage_ratio <= 1
        assert len(step.decode) + sum(count for _, count in step.prefill) <= 16
    assert all(one.finished for one in sequences)
    state = batching.statistics()
    assert (state.running, state.waiting, state.kv_usage_ratio) == (0, 0, 0)
