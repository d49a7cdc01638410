"""L10: what a row says, found by name or by the name given."""

from __future__ import annotations

import contextlib
from datetime import date
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.backends.backend import Call
from headway.load.inputs.dialogue import RowParser, RowPolicy
from headway.load.inputs.problems import RowError

CHAT = [
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": "two words"},
    {"role": "user", "content": "three"},
    {"role": "assistant", "content": "and four more words"},
]


def calls(fields: dict[str, Any], **policy: Any) -> list[Call]:
    return [turn.call for turn in RowParser(RowPolicy(**policy)).turns(fields)]


@pytest.mark.parametrize("name", ["prompt", "Question", " text ", "instruction", "INPUT"])
def test_prompts_are_found_by_name(name: str) -> None:
    assert calls({"id": 1, name: "hello"}) == [Call(prompt="hello")]


def test_the_most_telling_name_wins_and_empty_cells_do_not_count() -> None:
    assert calls({"text": "b", "prompt": "a"})[0].prompt == "a"
    assert calls({"text": "b", "prompt": ""})[0].prompt == "b"


def test_a_named_column_is_taken_and_a_missing_one_refused() -> None:
    assert calls({"prompt": "a", "q": "b"}, prompt_column="q")[0].prompt == "b"
    with pytest.raises(RowError, match=r"no column 'q' \(columns: prompt\)"):
        calls({"prompt": "a"}, prompt_column="q")


def test_a_row_without_a_prompt_says_what_columns_there_are() -> None:
    with pytest.raises(RowError, match=r"prompt_column \(columns: a, b\)"):
        calls({"a": "x", "b": "y"})


@pytest.mark.parametrize(("value", "reason"), [("  ", "empty"), (3, "not a text")])
def test_unusable_prompts_are_refused(value: Any, reason: str) -> None:
    with pytest.raises(RowError, match=reason):
        calls({"prompt": value})


@pytest.mark.parametrize("name", ["output_tokens", "max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize("value", [64, "64", 64.0])
def test_output_lengths_are_found_by_name(name: str, value: Any) -> None:
    assert calls({"prompt": "a", name: value})[0].output_tokens == 64


@pytest.mark.parametrize("value", [0, -1, 1.5, "many", True, 10**30, [1], "1e999"])
def test_unusable_output_lengths_are_refused(value: Any) -> None:
    with pytest.raises(RowError, match="output_tokens is not a whole number"):
        calls({"prompt": "a", "output_tokens": value})


def test_an_output_column_can_be_named() -> None:
    assert calls({"prompt": "a", "n": 3}, output_tokens_column="n")[0].output_tokens == 3
    with pytest.raises(RowError, match="no column 'n'"):
        calls({"prompt": "a"}, output_tokens_column="n")


@pytest.mark.parametrize("name", ["messages", "conversations", "prompt"])
def test_a_conversation_is_one_request_or_one_a_turn(name: str) -> None:
    (whole,) = calls({name: CHAT, "max_tokens": 9})
    assert [message.content for message in whole.messages] == ["one", "two words", "three"]
    assert whole.output_tokens == 9
    turns = calls({name: CHAT, "max_tokens": 9}, every_turn=True)
    assert [call.messages[0].content for call in turns] == ["one", "three"]
    assert [call.output_tokens for call in turns] == [9, 9]


def test_recorded_answers_give_the_output_lengths() -> None:
    """L10: a file's own output lengths."""
    count = {"count_answer": lambda text: len(text.split())}
    assert [c.output_tokens for c in calls({"messages": CHAT}, every_turn=True, **count)] == [2, 4]
    assert calls({"messages": CHAT}, **count)[0].output_tokens == 4
    assert calls({"prompt": "a", "response": "b c d"}, **count)[0].output_tokens == 3
    assert calls({"prompt": "a", "max_tokens": 7}, **count)[0].output_tokens == 7


def test_turns_have_settings_of_their_own() -> None:
    """L6: per-turn settings."""
    fields = {
        "max_tokens": 50,
        "turns": [
            "first",
            {"prompt": "second", "output_tokens": 5, "think_time_s": 2, "body": {"top_p": 0.5}},
            {"messages": [{"role": "user", "content": "third"}]},
        ],
    }
    first, second, third = RowParser(RowPolicy()).turns(fields)
    assert first.call == Call(prompt="first", output_tokens=50)
    assert second.call == Call(prompt="second", output_tokens=5, body={"top_p": 0.5})
    assert (first.think_time_s, second.think_time_s) == (None, 2.0)
    assert third.call.messages[0].content == "third"


@pytest.mark.parametrize(
    ("turns", "reason"),
    [
        ([], "turns is empty"),
        ([3], "turn 1 is neither"),
        (["a", {}], "turn 2 has no prompt"),
        ([{"prompt": "a", "think_time_s": -1}], "think_time_s"),
        ([{"prompt": "a", "think_time_s": "soon"}], "think_time_s"),
    ],
)
def test_unusable_turns_are_refused(turns: list[Any], reason: str) -> None:
    with pytest.raises(RowError, match=reason):
        calls({"turns": turns})


def test_several_turns_are_refused_where_the_backend_has_no_conversations() -> None:
    with pytest.raises(RowError, match="no conversations"):
        calls({"turns": ["a", "b"]}, single_turn=True)
    assert len(calls({"turns": ["a"]}, single_turn=True)) == 1


def test_nothing_goes_into_the_body_that_was_not_asked_for() -> None:
    """Trap 49: a data set's own fields stay out; `body` is what asks."""
    fields = {"prompt": "a", "model": "x", "temperature": 1, "tools": [{"a": 1}]}
    assert calls(fields) == [Call(prompt="a")]
    assert calls({**fields, "body": {"tools": [{"a": 1}]}})[0].body == {"tools": [{"a": 1}]}


def test_templates_and_callables_get_the_rows_fields_even_without_a_prompt() -> None:
    fields = {"user": 7, "day": date(2026, 1, 2), "price": Decimal("1.5"), "raw": b"ab"}
    (call,) = calls(fields, keep_fields=True)
    assert call.prompt is None
    assert call.variables is not None
    assert call.variables["user"] == 7
    assert call.variables["day"] == "2026-01-02"
    assert msgspec.json.decode(msgspec.json.encode(call), type=Call) == call


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = (
    "prompt messages conversations turns role content from value body max_tokens output_tokens "
    "think_time_s response tool_calls id after history"
)
names = st.sampled_from(NAMES.split())
roles = st.sampled_from(["user", "assistant", "system", "tool", "human", "gpt"])


@settings(deadline=None, max_examples=60)
@given(
    st.dictionaries(
        names,
        json_values
        | st.lists(st.dictionaries(names, json_values | roles | st.text(), max_size=4), max_size=4),
        max_size=5,
    ),
    st.booleans(),
)
def test_any_row_is_turns_or_refused(fields: dict[str, Any], flag: bool) -> None:
    with contextlib.suppress(RowError):
        made = calls(fields, every_turn=flag, keep_fields=flag, count_answer=len)
        assert made
        assert all(msgspec.json.encode(call) for call in made)
