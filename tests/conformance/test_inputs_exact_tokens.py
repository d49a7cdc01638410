"""L10 against the simulated server as a process: lengths and prefix reuse, as it counts them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from headway.backends.backend import Backend, Progress
from headway.backends.registry import create_backend, create_openai
from headway.backends.spec import OpenAIBackendSpec, TargetSpec
from headway.backends.tokens import TokenCounter, UsageCounter, open_token_counter
from headway.load.inputs import Recipe, open_inputs, prepare
from headway.load.spec import InputSpec, SyntheticInputSpec, TraceInputSpec

EXAMPLES = Path(__file__).parents[2] / "examples" / "data"
CHAT = OpenAIBackendSpec()
MODELLED = {"mode": "modelled", "prefill_tokens_per_s": 1e7, "step_base": 1e-4}


@asynccontextmanager
async def started(spec: OpenAIBackendSpec, target: TargetSpec) -> AsyncIterator[Backend]:
    backend = create_backend(spec, target)
    try:
        await backend.startup()
        await backend.validate()
        yield backend
    finally:
        await backend.shutdown()


async def prepared(
    inputs: InputSpec, spec: OpenAIBackendSpec, target: TargetSpec, tmp_path: Path
) -> Recipe:
    counter: TokenCounter | None = await open_token_counter(target, spec)
    assert counter is not None
    try:
        return await prepare(inputs, spec, 5, tmp_path, counter)
    finally:
        await counter.close()


async def send(backend: Backend, recipe: Recipe, stage: int, count: int) -> list[Progress]:
    """Send the first requests of a stage, one after another."""
    inputs = open_inputs(recipe, 5, stage)
    sent = []
    for index in range(count):
        conversation = inputs.conversation(index)
        assert conversation is not None
        sent.append(Progress())
        answer = await backend.resolve(conversation.turns[0].call, (), sent[-1])
        assert answer.failure is None
    inputs.close()
    return sent


@pytest.mark.parametrize("kind", ["openai-chat", "openai-completions", "openai-responses"])
async def test_the_server_counts_exactly_what_was_asked_for(
    sim: Any, tmp_path: Path, kind: Any
) -> None:
    target, spec = TargetSpec(url=sim().url), OpenAIBackendSpec(kind=kind)
    async with started(spec, target) as backend:
        for tokens, prefix in ((9, 0), (64, 0), (257, 33), (3_000, 0)):
            inputs = SyntheticInputSpec(prompt_tokens=tokens, prefix_tokens=prefix, output_tokens=2)
            recipe = await prepared(inputs, spec, target, tmp_path)
            assert recipe.vocabulary.source == "tokenize"
            assert recipe.provenance["prompt_tokens"]["max_deviation_tokens"] == 0
            sent = await send(backend, recipe, 0, 5)
            assert [one.input_tokens for one in sent] == [tokens + prefix] * 5
            assert [one.output_tokens for one in sent] == [2] * 5


async def test_calibrated_by_usage_the_server_counts_exactly_that_too(
    sim: Any, tmp_path: Path
) -> None:
    server = sim()
    target = TargetSpec(url=server.url)
    asking = create_openai(CHAT.model_copy(update={"stream": False}), target)
    await asking.startup()
    await asking.validate()
    counter = UsageCounter(asking)
    inputs = SyntheticInputSpec(prompt_tokens=300, output_tokens=1)
    recipe = await prepare(inputs, CHAT, 5, tmp_path, counter)
    await counter.close()
    assert recipe.vocabulary.source == "usage"
    probes = recipe.provenance["prompt_tokens"]["counts_asked"]
    assert probes <= 40
    async with started(CHAT, target) as backend:
        await send(backend, recipe, 0, 10)
    generated = [line for line in server.truth(at_least=probes + 10) if line["prompt_tokens"]]
    assert [line["prompt_tokens"] for line in generated[-10:]] == [300] * 10


async def test_no_prompt_hits_the_prefix_cache_by_accident(sim: Any, tmp_path: Path) -> None:
    """Trap 50: by the server's own cache, over two stages."""
    target = TargetSpec(url=sim(**MODELLED).url)
    inputs = SyntheticInputSpec(prompt_tokens=200, output_tokens=1)
    recipe = await prepared(inputs, CHAT, target, tmp_path)
    async with started(CHAT, target) as backend:
        for stage in (0, 1):
            sent = await send(backend, recipe, stage, 40)
            assert [one.cached_tokens or 0 for one in sent] == [0] * 40


async def test_a_shared_prefix_is_cached_after_its_groups_first_request(
    sim: Any, tmp_path: Path
) -> None:
    target = TargetSpec(url=sim(**MODELLED).url)
    inputs = SyntheticInputSpec(
        prompt_tokens=40, prefix_tokens=320, prefix_groups=2, output_tokens=1
    )
    recipe = await prepared(inputs, CHAT, target, tmp_path)
    async with started(CHAT, target) as backend:
        sent = await send(backend, recipe, 0, 20)
        cached = sorted(one.cached_tokens or 0 for one in sent)
        assert cached[:2] == [0, 0]
        assert all(304 <= tokens <= 336 for tokens in cached[2:])
        (cold, *_) = await send(backend, recipe, 1, 1)
        assert not cold.cached_tokens


async def test_a_traces_prefix_reuse_happens_in_the_servers_cache(sim: Any, tmp_path: Path) -> None:
    target = TargetSpec(url=sim(**MODELLED).url)
    inputs = TraceInputSpec(path=EXAMPLES / "mooncake.jsonl")
    recipe = await prepared(inputs, CHAT, target, tmp_path)
    async with started(CHAT, target) as backend:
        sent = await send(backend, recipe, 0, 5)
    assert [one.input_tokens for one in sent] == [1300, 1500, 700, 1900, 400]
    cached = [one.cached_tokens or 0 for one in sent]
    assert cached == pytest.approx([0, 1024, 0, 1500, 0], abs=24)
