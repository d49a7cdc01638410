from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.sim.messages import Function
from headway.sim.reply import ReplyPlan, channel_text, pieces, tool_reply
from headway.sim.tokenizer import tokenize


@given(tokens=st.integers(1, 60), data=st.data(), size=st.integers(1, 7))
def test_every_token_goes_out_once_whatever_the_chunk_size(
    tokens: int, data: st.DataObject, size: int
) -> None:
    reasoning = data.draw(st.integers(0, tokens))
    parts = pieces(ReplyPlan("m", reasoning, tokens, None, "stop", size))
    assert len(parts) == tokens
    assert len(tokenize(channel_text(parts, "reasoning"))) == reasoning
    assert len(tokenize(channel_text(parts, "content"))) == tokens - reasoning
    assert sum(part.first for part in parts if part) == (reasoning > 0) + (reasoning < tokens)


@pytest.mark.parametrize("tokens", [2, 3, 20])
@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"city": {"type": "string"}},
        {"days": {"type": "integer"}, "units": {"enum": ["C", "F"]}},
        {"days": {"type": "integer"}, "city": {"type": "string"}},
        {"places": {"type": "array"}, "deep": {"type": "object"}, "sure": {"type": "boolean"}},
    ],
)
def test_tool_arguments_are_valid_json_with_every_required_property(
    tokens: int, size: int, properties: dict[str, object]
) -> None:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    tool = tool_reply(Function("f", schema))
    parts = pieces(ReplyPlan("m", 0, tokens, tool, "tool_calls", size))
    assert len(parts) == tokens
    assert set(json.loads(channel_text(parts, "tool"))) == set(properties)
