"""The examples in docs/inputs.md are read by the code that they describe."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter

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
    (rows,) = blocks("jsonl")
    parsed = [RowParser(RowPolicy()).turns(json.loads(row)) for row in rows.splitlines()]
    assert [len(turns) for turns in parsed] == [2, 1]


def test_every_field_of_the_inputs_is_on_the_page() -> None:
    for spec in (SyntheticInputSpec, FileInputSpec, TraceInputSpec):
        for field in spec.model_fields:
            assert f"`{field}" in PAGE or field == "kind", field


def test_prompt_names_are_on_the_page_in_their_order() -> None:
    assert ", ".join(f"`{name}`" for name in PROMPT_NAMES) in PAGE
