"""What the parent does before anything starts."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from headway.backends.spec import NullBackendSpec, OpenAIBackendSpec
from headway.core.errors import ConfigError
from headway.load.inputs import prepare
from headway.load.inputs.preparation import in_thread
from headway.load.spec import SyntheticInputSpec


@pytest.mark.parametrize(
    "change", [{"prompt_tokens": 9}, {"turns": 2}, {"prefix_tokens": 5}, {"unique_prefix": False}]
)
async def test_the_workload_hash_tells_workloads_apart(tmp_path: Path, change: Any) -> None:
    """N9."""
    recipes = [
        await prepare(spec, NullBackendSpec(), 1, tmp_path)
        for spec in (SyntheticInputSpec(), SyntheticInputSpec(), SyntheticInputSpec(**change))
    ]
    assert recipes[0].workload_hash == recipes[1].workload_hash != recipes[2].workload_hash


async def test_the_workload_hash_ignores_seed_and_vocabulary_but_not_the_unit(
    tmp_path: Path, text_counter: Any
) -> None:
    """N9: two servers with the same model are asked for the same, whoever counted."""
    spec, backend = SyntheticInputSpec(), NullBackendSpec()
    counters = [
        text_counter(lambda text: len(text.split()), source=source, overhead=overhead)
        for source, overhead in (("tokenize", 3), ("usage", 9))
    ]
    counted = [
        await prepare(spec, backend, seed, tmp_path, counter)
        for seed, counter in enumerate(counters)
    ]
    uncounted = await prepare(spec, backend, 1, tmp_path)
    assert counted[0].vocabulary != counted[1].vocabulary
    assert counted[0].workload_hash == counted[1].workload_hash != uncounted.workload_hash


async def test_synthetic_turns_are_refused_for_embeddings(tmp_path: Path) -> None:
    backend = OpenAIBackendSpec(kind="openai-embeddings")
    with pytest.raises(ConfigError, match="leave out turns"):
        await prepare(SyntheticInputSpec(turns=2), backend, 1, tmp_path)
    assert (await prepare(SyntheticInputSpec(), backend, 1, tmp_path)).conversations is None


async def test_cancelling_ends_the_reading_at_its_next_row() -> None:
    """Ctrl-C while a large file is read must not wait for its end."""
    reading, ended = threading.Event(), threading.Event()

    def read_for_ever(check_stop: Any) -> None:
        try:
            while True:
                check_stop()
                reading.set()
        finally:
            ended.set()

    task = asyncio.create_task(in_thread(read_for_ever))
    assert await asyncio.to_thread(reading.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(ended.wait, 10)


async def test_what_goes_wrong_in_the_thread_is_seen() -> None:
    """Trap 33."""

    def fail(check_stop: Any) -> None:
        raise ConfigError("no such thing")

    with pytest.raises(ConfigError, match="no such thing"):
        await in_thread(fail)
