"""Reads recorded conversations (OpenAI, ShareGPT) and splits them into requests."""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

from headway.backends.backend import Message, Role
from headway.load.inputs.problems import RowError

_SHAREGPT_ROLES: dict[str, Role] = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "assistant": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "observation": "tool",
}
_ROLES: dict[str, Role] = {role: role for role in get_args(Role)}


class Asked(NamedTuple):
    """One request of a recorded conversation."""

    messages: tuple[Message, ...]
    """What is sent, after the history."""
    answer: Message | None
    """What was answered when it was recorded."""


def one_request(messages: tuple[Message, ...]) -> list[Asked]:
    """The whole conversation as one request.

    A closing assistant message is left out: it is what the target is asked for.

    Raises:
        RowError: there is nothing but assistant messages.
    """
    asked = list(messages)
    answer: Message | None = None
    while asked and asked[-1].role == "assistant":
        answer = asked.pop()
    if not asked:
        raise RowError("no message but the assistant's")
    return [Asked(tuple(asked), answer)]


def every_turn(messages: tuple[Message, ...]) -> list[Asked]:
    """Each user message as a request, with the system and tool messages around it.

    Recorded answers are left out, because the target's own become the history; except a call of a
    tool, which stays with the tool's reply: servers refuse replies to calls they never made.

    Raises:
        RowError: there is no user message.
    """
    turns: list[Asked] = []
    asked: list[Message] = []
    for message in messages:
        is_open = any(one.role == "user" for one in asked)
        is_answer = message.role == "assistant" and not (message.extra or {}).get("tool_calls")
        if is_open and (is_answer or message.role == "user"):
            turns.append(Asked(tuple(asked), message if is_answer else None))
            asked = []
        if not (is_answer and (is_open or turns)):  # a greeting before all questions stays
            asked.append(message)
    if any(one.role == "user" for one in asked):
        turns.append(Asked(tuple(asked), None))
    if not turns:
        raise RowError("no user message")
    return turns


def parse_messages(value: Any) -> tuple[Message, ...]:
    """A recorded list of messages, OpenAI's (`role`, `content`) or ShareGPT's (`from`, `value`).

    Raises:
        RowError: it is none, or one of its messages cannot be used.
    """
    if not isinstance(value, list) or not value:
        raise RowError("messages is not a list of messages")
    return tuple(_message(number, entry) for number, entry in enumerate(value, 1))


def _message(number: int, entry: Any) -> Message:
    if not isinstance(entry, dict):
        raise RowError(f"message {number} is not an object")
    if "role" not in entry and "from" in entry:
        name, content, used = str(entry["from"]), entry.get("value"), {"from", "value"}
        role = _SHAREGPT_ROLES.get(name.lower())
    else:
        name, content, used = str(entry.get("role")), entry.get("content"), {"role", "content"}
        role = _ROLES.get(name)
    if role is None:
        raise RowError(f"message {number} has the unknown role {name[:40]!r}")
    extra = {key: value for key, value in entry.items() if key not in used}
    return Message(role, _content(number, role, content, extra), extra or None)


def _content(
    number: int, role: Role, content: Any, extra: dict[str, Any]
) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        if content or role != "user":
            return content
        raise RowError(f"message {number} is empty")
    if isinstance(content, list) and content and all(isinstance(one, dict) for one in content):
        return content
    if content is None and role == "assistant" and extra.get("tool_calls"):
        return ""
    raise RowError(f"the content of message {number} is neither a text nor a list of parts")
