"""L10 and L6: synthetic conversations, reproducible by seed at any number of workers."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.backends.spec import OpenAIBackendSpec
from headway.core.distributions import Lognormal, Normal, Uniform
from headway.load.inputs import Conversation, open_inputs, prepare
from headway.load.spec import SyntheticInputSpec
from headway.sim.messages import ChatMessage
from headway.sim.tokenizer import tokenize_chat

SHARED_FOLDER = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def words(conversation: Conversation, turn: int = 0) -> int:
    return len((conversation.turns[turn].call.prompt or "").split(" "))


def sim_chat_tokens(text: str) -> int:
    return len(tokenize_chat([ChatMessage(role="user", content=text)]))


async def test_the_default_is_one_turn_of_the_length_asked_for(opened: Any) -> None:
    _, inputs = await opened(SyntheticInputSpec())
    conversation = inputs.conversation(0)
    assert len(conversation.turns) == 1
    assert words(conversation) == 256
    assert conversation.turns[0].call.output_tokens == 128
    assert conversation.turns[0].call.body is None  # trap 49: nothing that was not asked for


@settings(
    deadline=None, max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(tokens=st.integers(9, 3_000), prefix=st.integers(0, 300), index=st.integers(0, 10**9))
async def test_prompts_have_exactly_the_tokens_asked_for(
    text_counter: Any, tmp_path: Path, tokens: int, prefix: int, index: int
) -> None:
    spec = SyntheticInputSpec(prompt_tokens=tokens, prefix_tokens=prefix)
    counter = text_counter(sim_chat_tokens)
    recipe = await prepare(spec, OpenAIBackendSpec(), 1, tmp_path, counter)
    prompt = open_inputs(recipe, 1).conversation(index).turns[0].call.prompt  # type: ignore[union-attr]
    assert prompt is not None
    assert sim_chat_tokens(prompt) == tokens + prefix


async def test_a_real_byte_pair_encoding_counts_what_was_asked_for(
    opened: Any, text_counter: Any, count_tokens: Callable[[str], int]
) -> None:
    spec = SyntheticInputSpec(prompt_tokens=Uniform(low=20, high=900), prefix_tokens=64)
    recipe, inputs = await opened(spec, counter=text_counter(count_tokens, overhead=9))
    lengths = recipe.provenance["prompt_tokens"]
    assert lengths["max_deviation_tokens"] == 0
    _, uncounted = await opened(spec)
    for index in range(200):
        prompt = inputs.conversation(index).turns[0].call.prompt
        assert 9 + count_tokens(prompt) == words(uncounted.conversation(index))


@given(order=st.permutations(range(12)))
@settings(
    deadline=None, max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_content_does_not_depend_on_the_order_of_access(
    tmp_path: Path, order: list[int]
) -> None:
    """Workers ask for other indexes in another order; what is sent must not change."""
    spec = SyntheticInputSpec(
        prompt_tokens=Normal(mean=80, sd=30),
        output_tokens=Uniform(low=1, high=50),
        turns="1..4",
        think_time_s="0..2",
        prefix_tokens=8,
        prefix_groups=3,
    )
    recipe = await prepare(spec, OpenAIBackendSpec(), 1, tmp_path)
    in_order = open_inputs(recipe, 1)
    expected = [in_order.conversation(index) for index in range(12)]
    shuffled = open_inputs(recipe, 1)
    assert {n: shuffled.conversation(n) for n in order} == dict(enumerate(expected))


async def test_prompts_of_a_run_share_no_beginning(opened: Any) -> None:
    """Trap 50: requests, stages and runs of other seeds begin with other words."""
    spec = SyntheticInputSpec(prompt_tokens=64)
    beginnings = set()
    for seed, stage in ((1, 0), (1, 1), (2, 0)):
        _, inputs = await opened(spec, seed=seed, stage=stage)
        for index in range(1_500):
            beginnings.add(tuple(inputs.conversation(index).turns[0].call.prompt.split()[:4]))
    assert len(beginnings) == 4_500


async def test_the_same_seed_sends_the_same(opened: Any) -> None:
    first, second = [(await opened(SyntheticInputSpec(), seed=5))[1] for _ in range(2)]
    assert [first.conversation(n) for n in range(20)] == [second.conversation(n) for n in range(20)]


async def test_lengths_follow_their_distributions(opened: Any) -> None:
    spec = SyntheticInputSpec(
        prompt_tokens=Lognormal(mean=300, sd=150), output_tokens=Normal(mean=100, sd=20)
    )
    _, inputs = await opened(spec)
    conversations = [inputs.conversation(index) for index in range(1_500)]
    inputs_mean = sum(words(one) for one in conversations) / 1_500
    outputs_mean = sum(one.turns[0].call.output_tokens for one in conversations) / 1_500
    assert inputs_mean == pytest.approx(300, rel=0.05)
    assert outputs_mean == pytest.approx(100, rel=0.03)


async def test_output_length_is_not_asked_for_when_the_spec_does_not(opened: Any) -> None:
    _, inputs = await opened(SyntheticInputSpec(output_tokens=None))
    assert inputs.conversation(0).turns[0].call.output_tokens is None


async def test_groups_share_their_prefix_and_nothing_more(opened: Any) -> None:
    spec = SyntheticInputSpec(prompt_tokens=32, prefix_tokens=50, prefix_groups=4)
    _, inputs = await opened(spec)
    split = [inputs.conversation(n).turns[0].call.prompt.split(" ") for n in range(400)]
    assert {len(one) for one in split} == {82}
    prefixes = {tuple(one[:50]) for one in split}
    assert len(prefixes) == 4
    counts = [sum(tuple(one[:50]) == prefix for one in split) for prefix in prefixes]
    assert min(counts) > 60  # a hundred each on average
    assert len({tuple(one[50:56]) for one in split}) == 400


async def test_each_stage_has_prefixes_of_its_own(opened: Any) -> None:
    """Trap 50: otherwise the second stage would begin with a warm cache and the first did not."""
    spec = SyntheticInputSpec(prompt_tokens=8, prefix_tokens=20)
    prompts = [
        (await opened(spec, stage=stage))[1].conversation(0).turns[0].call.prompt
        for stage in range(2)
    ]
    assert prompts[0].split()[:2] != prompts[1].split()[:2]


async def test_conversations_have_turns_with_think_time_between_them(opened: Any) -> None:
    """L6: the first turn does not wait, each later one has a time and a length of its own."""
    spec = SyntheticInputSpec(
        prompt_tokens=Uniform(low=10, high=60), turns=5, think_time_s=Uniform(low=1, high=2)
    )
    _, inputs = await opened(spec)
    turns = inputs.conversation(3).turns
    assert len(turns) == 5
    assert turns[0].think_time_s == 0
    assert all(1 <= turn.think_time_s <= 2 for turn in turns[1:])
    assert len({turn.think_time_s for turn in turns}) == 5
    assert len({turn.call.prompt for turn in turns}) == 5


async def test_the_template_is_part_of_the_first_turns_length_only(
    opened: Any, text_counter: Any
) -> None:
    counter = text_counter(lambda text: len(text.split()), overhead=10)
    _, inputs = await opened(SyntheticInputSpec(prompt_tokens=50, turns=2), counter=counter)
    assert [words(inputs.conversation(0), turn) for turn in (0, 1)] == [40, 50]


async def test_measured_lengths_stay_in_pairs(opened: Any, tmp_path: Path) -> None:
    """A file's empirical distribution: long prompts keep the answers that they had."""
    file = tmp_path / "lengths.csv"
    file.write_text("prompt_tokens,output_tokens\n10,1\n200,20\n3000,7\n")
    recipe, inputs = await opened(SyntheticInputSpec(lengths=file))
    pairs = [
        (words(one), one.turns[0].call.output_tokens)
        for one in (inputs.conversation(index) for index in range(300))
    ]
    assert set(pairs) == {(10, 1), (200, 20), (3000, 7)}
    assert min(pairs.count(pair) for pair in set(pairs)) > 60
    assert recipe.conversations is None


async def test_indexes_far_apart_work_as_well(opened: Any) -> None:
    _, inputs = await opened(SyntheticInputSpec())
    rng = random.Random(1)
    far = [rng.randrange(2**40) for _ in range(200)]
    assert len({inputs.conversation(index).turns[0].call.prompt[:40] for index in far}) == 200
