"""Answers go where their names stand: in prompts, in messages, in the text parts of messages."""

from __future__ import annotations

from headway.backends.backend import Call, Message
from headway.load.inputs.placeholders import filled, placeholders

IMAGE = {"type": "image_url", "image_url": {"url": "data:{{a}}"}}
CALL = Call(
    prompt="{{a}} then {{b}}",
    messages=(
        Message("system", "be brief about {{b}}", {"name": "{{a}}"}),
        Message("user", [{"type": "text", "text": "see {{c.1}}"}, IMAGE]),
    ),
)


def test_names_are_found_in_every_text_in_their_order() -> None:
    assert list(placeholders(CALL)) == ["a", "b", "b", "c.1"]
    assert list(placeholders(Call())) == []


def test_what_is_no_text_stays_as_it_is() -> None:
    call = filled(CALL, {"a": "one", "b": "two", "c.1": "three"})
    assert call.prompt == "one then two"
    system, user = call.messages
    assert (system.role, system.content) == ("system", "be brief about two")
    assert system.extra == {"name": "{{a}}"}
    assert user.content == [{"type": "text", "text": "see three"}, IMAGE]


def test_an_answer_is_put_in_as_it_is_and_an_unknown_name_is_left() -> None:
    """An answer may itself hold what looks like a name."""
    assert filled(Call(prompt="{{a}} {{x}}"), {"a": "{{b}}", "b": "no"}).prompt == "{{b}} {{x}}"
    messages = (Message("user", "{{a}}"),)
    assert filled(Call(messages=messages), {"a": "yes"}).messages[0].content == "yes"
