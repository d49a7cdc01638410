"""How deep JSON is nested, told without parsing it."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from headway.core.nesting import is_nested_deeper

TEXTS = ("", "a", "[", "]]", '"', "\\", '\\"[', '"{', "ä[", '"]\\\\"')


def levels_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(levels_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(levels_of, value), default=0)
    return 0


def some_json(rng: random.Random, levels: int) -> Any:
    kind = rng.randrange(4)
    if levels == 0 or kind == 0:
        return rng.choice((None, 1.5, *TEXTS))
    if kind == 1:
        return {rng.choice(TEXTS): some_json(rng, levels - 1) for _ in range(rng.randrange(3))}
    return [some_json(rng, levels - 1) for _ in range(rng.randrange(4))]


@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_the_depth_is_that_of_the_parsed_value_whatever_stands_in_texts(ensure_ascii: bool) -> None:
    rng = random.Random(7)
    for _ in range(2_000):
        value = some_json(rng, 7)
        text = json.dumps(value, ensure_ascii=ensure_ascii).encode()
        found = next(level for level in range(9) if not is_nested_deeper(text, level))
        assert found == levels_of(value), text


def test_brackets_in_a_row_are_not_nested() -> None:
    assert not is_nested_deeper(json.dumps([{"a": []}] * 1_000).encode(), 3)
    assert is_nested_deeper(json.dumps([{"a": []}] * 1_000).encode(), 2)
