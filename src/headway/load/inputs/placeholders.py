"""Answers put into the texts of later turns, in the place of `{{turn-id}}`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from headway.backends.backend import Call, Message

_PLACEHOLDER = re.compile(r"\{\{([A-Za-z0-9_.-]+)\}\}")


def placeholders(call: Call) -> Iterator[str]:
    """The names in a call's texts, in their order."""
    for text in _texts(call):
        yield from _PLACEHOLDER.findall(text)


def filled(call: Call, answers: Mapping[str, str]) -> Call:
    """The call with each placeholder of a known name replaced, once: answers stay as they are."""

    def fill(text: str) -> str:
        return _PLACEHOLDER.sub(lambda found: answers.get(found[1], found[0]), text)

    return msgspec.structs.replace(
        call,
        prompt=None if call.prompt is None else fill(call.prompt),
        messages=tuple(
            Message(message.role, _content(message.content, fill), message.extra)
            for message in call.messages
        ),
    )


def _texts(call: Call) -> Iterator[str]:
    if call.prompt is not None:
        yield call.prompt
    for message in call.messages:
        yield from _content_texts(message.content)


def _content_texts(content: str | list[dict[str, Any]]) -> Iterator[str]:
    if isinstance(content, str):
        yield content
        return
    yield from (part["text"] for part in content if isinstance(part.get("text"), str))


def _content(
    content: str | list[dict[str, Any]], fill: Callable[[str], str]
) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return fill(content)
    return [
        part | {"text": fill(part["text"])} if isinstance(part.get("text"), str) else part
        for part in content
    ]
