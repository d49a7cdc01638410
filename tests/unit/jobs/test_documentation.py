"""The examples of docs/operations.md run, and its table of options is complete."""

from __future__ import annotations

import re
from pathlib import Path

from headway.jobs import Operation, load_operations

PAGE = Path(__file__).parents[3] / "docs" / "operations.md"


def test_every_example_loads(tmp_path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 6
    files = []
    for number, block in enumerate(blocks):
        path = tmp_path / f"documented_{number}.py"
        path.write_text(block)
        files.append(str(path))
    registry = load_operations(*files)
    assert {op.name for op in registry} == {
        *("train", "add", "fetch", "render", "evaluate", "tune"),
    }
    assert registry.precondition("gpus_free") is not None
    tune = registry.get("tune")
    assert tune.concurrency_key_for(tune.request_model(model="a")) == "model:a"


def test_every_option_is_documented() -> None:
    table = PAGE.read_text().rpartition("## All options")[2]
    documented = set(re.findall(r"`([a-z_]+)`", table.replace("`long`, `short` or `inline`", "")))
    options = set(Operation.__dataclass_fields__) - {"function"}
    assert options <= documented
