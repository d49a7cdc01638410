"""L10, L2: recorded arrivals and lengths, with the prefix reuse that was recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headway.core.distributions import Uniform
from headway.core.errors import ConfigError, InputError
from headway.load.inputs import offsets_ns
from headway.load.spec import SyntheticInputSpec, TraceInputSpec

MS = 1_000_000


def trace(tmp_path: Path, text: str, name: str = "trace") -> TraceInputSpec:
    path = tmp_path / name
    path.write_text(text)
    return TraceInputSpec(path=path)


def words(inputs: Any, index: int) -> list[str]:
    prompt: str = inputs.conversation(index).turns[0].call.prompt
    return prompt.split(" ")


def shared_words(a: list[str], b: list[str]) -> int:
    pairs = zip(a, b, strict=False)
    return next((n for n, (x, y) in enumerate(pairs) if x != y), min(len(a), len(b)))


async def test_mooncake_gives_times_lengths_and_shared_blocks(opened: Any, examples: Path) -> None:
    recipe, inputs = await opened(TraceInputSpec(path=examples / "mooncake.jsonl"))
    assert list(offsets_ns(recipe)) == [0, 250 * MS, 250 * MS, 1100 * MS, 2000 * MS]
    texts = [words(inputs, index) for index in range(5)]
    assert [len(text) for text in texts] == [1300, 1500, 700, 1900, 400]
    outputs = [inputs.conversation(index).turns[0].call.output_tokens for index in range(5)]
    assert outputs == [40, 64, 16, 120, 32]
    assert shared_words(texts[0], texts[1]) == pytest.approx(1024, abs=2)  # blocks 1 and 2
    assert shared_words(texts[1], texts[3]) == 1500  # all of the shorter: blocks 1, 2 and 4
    assert shared_words(texts[0], texts[2]) <= 1
    assert inputs.conversation(5) is None
    assert recipe.conversations == 5


async def test_the_templates_tokens_are_part_of_a_recorded_length(
    opened: Any, examples: Path, text_counter: Any
) -> None:
    counter = text_counter(lambda text: len(text.split()), overhead=12)
    spec = TraceInputSpec(path=examples / "mooncake.jsonl")
    recipe, inputs = await opened(spec, counter=counter)
    assert [len(words(inputs, n)) + 12 for n in range(5)] == [1300, 1500, 700, 1900, 400]
    assert recipe.provenance["prompt_tokens"]["max_deviation_tokens"] == 0


async def test_a_length_beyond_its_blocks_is_filled_with_text_of_its_own(
    opened: Any, tmp_path: Path
) -> None:
    line = '{"timestamp": 0, "input_length": 900, "output_length": 1, "hash_ids": [5]}\n'
    _, inputs = await opened(trace(tmp_path, line * 2, "a.jsonl"))
    first, second = words(inputs, 0), words(inputs, 1)
    assert len(first) == len(second) == 900
    assert shared_words(first, second) == 512


async def test_azure_gives_times_to_the_tenth_of_a_microsecond(opened: Any, examples: Path) -> None:
    recipe, inputs = await opened(TraceInputSpec(path=examples / "azure.csv"))
    assert list(offsets_ns(recipe)) == [0, 52_000_000, 98_189_000, 1_140_163_000]
    assert [len(words(inputs, n)) for n in range(4)] == [374, 396, 879, 91]
    assert len({tuple(words(inputs, n)[:4]) for n in range(4)}) == 4


async def test_bare_timestamps_take_their_lengths_from_the_spec(
    opened: Any, tmp_path: Path
) -> None:
    path = tmp_path / "arrivals.txt"
    path.write_text("1700158546.5\n1700158546.75\n1700158549\n")
    spec = TraceInputSpec(path=path, prompt_tokens=Uniform(low=10, high=90), output_tokens=None)
    recipe, inputs = await opened(spec)
    assert list(offsets_ns(recipe)) == [0, 250 * MS, 2500 * MS]
    lengths = [len(words(inputs, n)) for n in range(3)]
    assert all(10 <= length <= 90 for length in lengths)
    assert len(set(lengths)) > 1
    assert inputs.conversation(0).turns[0].call.output_tokens is None


async def test_missing_lengths_are_drawn_and_given_ones_kept(opened: Any, tmp_path: Path) -> None:
    text = '{"timestamp": 0, "input_length": 40}\n{"timestamp": 5, "output_length": 3}\n'
    _, inputs = await opened(trace(tmp_path, text, "a.jsonl"))
    assert [len(words(inputs, n)) for n in range(2)] == [40, 256]
    assert [inputs.conversation(n).turns[0].call.output_tokens for n in range(2)] == [128, 3]


async def test_a_trace_out_of_order_is_sorted_and_says_so(opened: Any, tmp_path: Path) -> None:
    text = "".join(
        f'{{"timestamp": {at}, "input_length": {length}, "output_length": 1}}\n'
        for at, length in ((300, 30), (100, 10), (200, 20), (200, 21))
    )
    recipe, inputs = await opened(trace(tmp_path, text, "a.jsonl"))
    assert list(offsets_ns(recipe)) == [0, 100 * MS, 100 * MS, 200 * MS]
    assert [len(words(inputs, n)) for n in range(4)] == [10, 20, 21, 30]
    assert any("not in order of time (1 rows" in note.text for note in recipe.notes)


async def test_lengths_of_zero_are_raised_and_told(opened: Any, tmp_path: Path) -> None:
    text = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,5,0\n"
    recipe, inputs = await opened(trace(tmp_path, text))
    assert inputs.conversation(0).turns[0].call.output_tokens == 1
    assert any("raised to 1" in note.text for note in recipe.notes)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"input_length": 3}\n', "line 1: no timestamp"),
        ('{"timestamp": "soon"}\n', "line 1: the timestamp is not a number: 'soon'"),
        ('{"timestamp": 1, "input_length": -3}\n', "line 1: input_length is not a whole number"),
        ('{"timestamp": 1, "hash_ids": ["a"]}\n', "line 1: hash_ids is not a list"),
        ("TIMESTAMP,ContextTokens\nnoon,3\n", "line 2: not a timestamp: 'noon'"),
        ("when,ContextTokens\n0,3\n", "line 2: no column 'TIMESTAMP'"),
        ("yesterday\n", "line 1: not a timestamp: 'yesterday'"),
        ("", "is empty"),
    ],
)
async def test_an_unusable_trace_is_an_error_that_names_the_line(
    opened: Any, tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        await opened(trace(tmp_path, text))


async def test_a_header_over_bare_timestamps_is_left_out_and_told(
    opened: Any, tmp_path: Path
) -> None:
    recipe, _ = await opened(trace(tmp_path, "timestamp\n1\n2\n"))
    assert list(offsets_ns(recipe)) == [0, 1000 * MS]
    assert any("line 1: not a timestamp" in note.text for note in recipe.notes)


async def test_only_traces_have_arrival_times(opened: Any) -> None:
    recipe, _ = await opened(SyntheticInputSpec())
    with pytest.raises(ConfigError, match="only trace inputs"):
        offsets_ns(recipe)


async def test_other_times_are_another_workload(opened: Any, tmp_path: Path) -> None:
    first, _ = await opened(trace(tmp_path, "0\n1\n", "a"))
    shifted, _ = await opened(trace(tmp_path, "100\n101\n", "b"))
    slower, _ = await opened(trace(tmp_path, "0\n2\n", "c"))
    assert first.workload_hash == shifted.workload_hash != slower.workload_hash


async def test_a_length_shorter_than_its_blocks_ends_within_them(
    opened: Any, tmp_path: Path
) -> None:
    """The server may have counted the last block whole, or cut the prompt."""
    line = '{"timestamp": 0, "input_length": %d, "output_length": 1, "hash_ids": [5, 6, 7]}\n'
    _, inputs = await opened(trace(tmp_path, line % 600 + line % 1024 + line % 2000, "a.jsonl"))
    texts = [words(inputs, index) for index in range(3)]
    assert [len(text) for text in texts] == [600, 1024, 2000]
    assert shared_words(texts[0], texts[2]) == 600
    assert shared_words(texts[1], texts[2]) == 1024
