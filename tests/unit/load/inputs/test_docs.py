"""The examples in docs/inputs.md are read by the code that they describe."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from headway.load.inputs import offsets_ns
from headway.load.inputs.conversation import Links
from headway.load.inputs.dialogue import RowParser, RowPolicy
from headway.load.inputs.fields import PROMPT_NAMES
from headway.load.spec import FileInputSpec, InputSpec, SyntheticInputSpec, TraceInputSpec

PAGE = (Path(__file__).parents[4] / "docs" / "inputs.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


async def test_the_run_files_inputs_can_be_prepared(opened: Any, examples: Path) -> None:
    adapter: TypeAdapter[InputSpec] = TypeAdapter(InputSpec)
    found = [adapter.validate_python(yaml.safe_load(block)["inputs"]) for block in blocks("yaml")]
    assert [spec.kind for spec in found] == ["synthetic", "trace"]
    for spec in found:
        named = spec.lengths if isinstance(spec, SyntheticInputSpec) else spec.path
        field = "lengths" if isinstance(spec, SyntheticInputSpec) else "path"
        assert named is not None
        _, inputs = await opened(spec.model_copy(update={field: examples / named.name}))
        assert inputs.conversation(0)


def test_rows_with_turns_are_read() -> None:
    rows, graphs, _ = blocks("jsonl")
    parsed = [RowParser(RowPolicy()).turns(json.loads(row)) for row in rows.splitlines()]
    assert [len(turns) for turns in parsed] == [2, 1]
    parsed = [RowParser(RowPolicy()).turns(json.loads(row)) for row in graphs.splitlines()]
    assert [len(turns) for turns in parsed] == [4, 4]
    assert parsed[0][3].links == Links((1, 2))
    assert parsed[1][3].links == Links((1, 2), (0.2, 0.1), (0,), {"a": 1, "b": 2})


async def test_the_sessions_on_the_page_can_be_replayed(opened: Any, examples: Path) -> None:
    """L6: their gaps become think times, their lengths those of prompts."""
    _, graphs, sessions = blocks("jsonl")
    assert (examples / "agents.jsonl").read_text() == graphs
    assert (examples / "sessions.jsonl").read_text() == sessions
    recipe, inputs = await opened(TraceInputSpec(path=examples / "sessions.jsonl"))
    assert list(offsets_ns(recipe)) == [0, 1_200_000_000]
    turns = inputs.conversation(0).turns
    assert [turn.think_time_s for turn in turns] == pytest.approx([0, 0.25, 0.8, 0.1])
    words = [len((turn.call.prompt or "").split()) for turn in turns]
    assert words == [300, 40, 560, 1100 - 340 - (40 + 25) - (560 + 30)]
    assert [turn.think_time_s for turn in inputs.conversation(1).turns] == [0.0, 3.0]


def test_every_field_of_the_inputs_is_on_the_page() -> None:
    for spec in (SyntheticInputSpec, FileInputSpec, TraceInputSpec):
        for field in spec.model_fields:
            assert f"`{field}" in PAGE or field == "kind", field


def test_prompt_names_are_on_the_page_in_their_order() -> None:
    assert ", ".join(f"`{name}`" for name in PROMPT_NAMES) in PAGE
