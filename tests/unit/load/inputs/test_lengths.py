from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headway.core.errors import InputError
from headway.load.spec import SyntheticInputSpec


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "ContextTokens,GeneratedTokens\n30,4\n"),
        ("a.jsonl", '{"input_length": 30, "output_length": 4}\n'),
        ("a.csv", "prompt_tokens,output_tokens\n30,4\n"),
    ],
)
async def test_both_lengths_are_found_by_their_usual_names(
    opened: Any, tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    _, inputs = await opened(SyntheticInputSpec(lengths=tmp_path / name))
    call = inputs.conversation(0).turns[0].call
    assert (len(call.prompt.split()), call.output_tokens) == (30, 4)


async def test_without_output_lengths_the_spec_decides(opened: Any, tmp_path: Path) -> None:
    """A list of numbers, one a line, is a file of lengths too."""
    (tmp_path / "a.txt").write_text("30\n")
    _, inputs = await opened(SyntheticInputSpec(lengths=tmp_path / "a.txt", output_tokens=77))
    call = inputs.conversation(0).turns[0].call
    assert (len(call.prompt.split()), call.output_tokens) == (30, 77)


async def test_a_file_without_lengths_is_refused(opened: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("title\nx\n")
    with pytest.raises(InputError, match="line 2: no prompt length"):
        await opened(SyntheticInputSpec(lengths=tmp_path / "a.csv"))


async def test_the_examples_lengths_are_read(opened: Any, examples: Path) -> None:
    recipe, _ = await opened(SyntheticInputSpec(lengths=examples / "lengths.csv"))
    assert recipe.rows.count == 5
