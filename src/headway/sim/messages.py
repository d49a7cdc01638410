"""What clients send, reduced to the fields that the simulation reads; unknown fields pass."""

from __future__ import annotations

from typing import Any

import msgspec


class ContentPart(msgspec.Struct):
    """One part of a message's content."""

    type: str = "text"
    text: str | None = None


class FunctionCall(msgspec.Struct):
    """The function that a past reply called."""

    name: str = ""
    arguments: str = ""


class ToolCall(msgspec.Struct):
    """A tool call in the history."""

    function: FunctionCall = msgspec.field(default_factory=FunctionCall)


class ChatMessage(msgspec.Struct):
    """One message of a conversation."""

    role: str
    content: str | list[ContentPart] | None = None
    tool_calls: list[ToolCall] | None = None


class Function(msgspec.Struct):
    """A function that the model may call."""

    name: str
    parameters: dict[str, Any] | None = None


class StreamOptions(msgspec.Struct):
    """`stream_options` of chat and text completions."""

    include_usage: bool = False


class Refusal(msgspec.Struct, frozen=True):
    """Why a request is not carried out, in the OpenAI error shape."""

    status: int
    message: str
    type: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None
