"""Inputs of one's own: what is asked of them before a run, and what they are refused for (L9)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway.core.errors import ConfigError
from headway.load.spec import PluginInputSpec

MODULE = """
from headway.backends.backend import Call
from headway.load.inputs.conversation import Conversation, Turn

closed = []


class Numbers:
    def __init__(self, options, seed, stage):
        self._given = options, seed, stage
        self._count = options.get("count", 2)
        if "known" in options:
            self.conversations = options["known"]
        if "hash" in options:
            self.content_hash = options.pop("hash")

    def conversation(self, index):
        if index >= self._count:
            return None
        return Conversation(turns=(Turn(call=Call(prompt=f"{self._given[1:]} {index}")),))

    def close(self):
        closed.append(self._given)


class Silent:
    def __init__(self, options, seed, stage):
        pass
"""


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., PluginInputSpec]:
    (tmp_path / "own_inputs.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return lambda name="Numbers", **options: PluginInputSpec(
        name=f"own_inputs:{name}", options=options
    )


async def test_they_are_told_the_seed_and_the_stage(opened: Any, spec: Any) -> None:
    recipe, inputs = await opened(spec(), seed=7, stage=3)
    assert inputs.conversation(0).turns[0].call.prompt == "(7, 3) 0"
    assert inputs.conversation(2) is None
    assert recipe.conversations is None, "they did not say how many there are"
    assert recipe.provenance == {"plugin": "own_inputs:Numbers"}


async def test_what_they_know_of_themselves_is_used(opened: Any, spec: Any) -> None:
    recipe, _ = await opened(spec(known=2))
    assert recipe.conversations == 2
    hashes = {
        (await opened(asked))[0].workload_hash
        for asked in (spec(), spec(count=3), spec(hash="a"), spec(hash="b"))
    }
    assert len(hashes) == 4


async def test_inputs_without_anything_in_them_are_refused_and_closed(
    opened: Any, spec: Any
) -> None:
    """Trap 32: empty inputs hung."""
    import own_inputs  # type: ignore[import-not-found]

    own_inputs.closed.clear()
    with pytest.raises(ConfigError, match="inputs own_inputs:Numbers hold nothing"):
        await opened(spec(count=0))
    assert len(own_inputs.closed) == 1


async def test_what_makes_no_inputs_is_named(opened: Any, spec: Any) -> None:
    with pytest.raises(ConfigError, match="has no method conversation"):
        await opened(spec("Silent"))
