"""L6, L10: recorded conversations become requests."""

from __future__ import annotations

from typing import Any

import pytest

from headway.backends.backend import Message
from headway.load.inputs.messages import Asked, every_turn, one_request, parse_messages
from headway.load.inputs.problems import RowError


def openai(*pairs: tuple[str, Any]) -> list[dict[str, Any]]:
    return [{"role": role, "content": content} for role, content in pairs]


def roles(asked: list[Asked]) -> list[str]:
    return ["".join(message.role[0] for message in one.messages) for one in asked]


LONG = openai(("system", "s"), ("user", "1"), ("assistant", "a"), ("user", "2"), ("assistant", "b"))


def test_messages_keep_their_role_content_and_other_fields() -> None:
    parts = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "x"}}]
    messages = parse_messages([{"role": "user", "content": parts, "name": "ann"}])
    assert messages == (Message("user", parts, {"name": "ann"}),)


def test_sharegpt_roles_are_translated() -> None:
    froms = ("system", "human", "gpt", "tool", "Human")
    messages = parse_messages([{"from": name, "value": "x"} for name in froms])
    assert [one.role for one in messages] == ["system", "user", "assistant", "tool", "user"]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([], "not a list of messages"),
        ("hi", "not a list of messages"),
        (["hi"], "message 1 is not an object"),
        (openai(("user", "a"), ("robot", "b")), "message 2 has the unknown role 'robot'"),
        ([{"content": "a"}], "unknown role"),
        ([{"role": ["user"], "content": "a"}], "unknown role"),
        (openai(("user", "")), "message 1 is empty"),
        (openai(("user", 3)), "neither a text nor a list of parts"),
        (openai(("user", None)), "neither a text nor a list of parts"),
        (openai(("user", [])), "neither a text nor a list of parts"),
    ],
)
def test_unusable_messages_are_refused_with_their_number(value: Any, reason: str) -> None:
    with pytest.raises(RowError, match=reason):
        parse_messages(value)


def test_one_request_leaves_out_the_answer_that_is_asked_for() -> None:
    (asked,) = one_request(parse_messages(LONG))
    assert roles([asked]) == ["suau"]
    assert asked.answer == Message("assistant", "b")


def test_one_request_without_a_closing_answer_is_sent_whole() -> None:
    (asked,) = one_request(parse_messages(LONG[:4]))
    assert roles([asked]) == ["suau"]
    assert asked.answer is None


def test_a_conversation_of_answers_only_cannot_be_sent() -> None:
    messages = parse_messages(openai(("assistant", "a"), ("assistant", "b")))
    for split in (one_request, every_turn):
        with pytest.raises(RowError):
            split(messages)


def test_every_user_message_is_a_turn_and_real_answers_take_the_place_of_recorded_ones() -> None:
    asked = every_turn(parse_messages(LONG))
    assert roles(asked) == ["su", "u"]
    assert [one.answer and one.answer.content for one in asked] == ["a", "b"]


def test_a_last_question_without_answer_is_a_turn() -> None:
    assert roles(every_turn(parse_messages(LONG[:4]))) == ["su", "u"]


def test_two_questions_in_a_row_are_two_turns() -> None:
    asked = every_turn(parse_messages(openai(("user", "1"), ("user", "2"), ("assistant", "a"))))
    assert roles(asked) == ["u", "u"]
    assert asked[0].answer is None


def test_a_tools_reply_stays_with_the_call_that_it_answers() -> None:
    """A server refuses replies to tool calls that are not in the history."""
    messages = [
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "tool", "tool_call_id": "1", "content": "rain"},
        {"role": "assistant", "content": "It rains."},
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "umbrella?"},
    ]
    asked = every_turn(parse_messages(messages))
    assert roles(asked) == ["uat", "su"]
    assert asked[0].messages[1] == Message("assistant", "", {"tool_calls": [{"id": "1"}]})
    assert asked[0].answer == Message("assistant", "It rains.")


def test_a_greeting_before_the_first_question_is_kept() -> None:
    greeted = openai(("assistant", "hello"), ("user", "1"), ("assistant", "a"), ("assistant", "b"))
    assert roles(every_turn(parse_messages(greeted))) == ["au"]
