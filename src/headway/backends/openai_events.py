"""What the OpenAI API sends, as far as the numbers need it: typed, everything else skipped.

Decoding into these takes a third of the time that building dictionaries of the whole event does.
They hold no cycles, so the garbage collector need not look at them (`gc=False`).
"""

from __future__ import annotations

from typing import Any

import msgspec


class TokenDetails(msgspec.Struct, gc=False):
    """Of a usage's input side."""

    cached_tokens: int | None = None


class Usage(msgspec.Struct, gc=False):
    """Token counts of chat, completions and embeddings (prompt_, completion_), and of responses."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: TokenDetails | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: TokenDetails | None = None

    @property
    def cached(self) -> int | None:
        details = self.prompt_tokens_details or self.input_tokens_details
        return None if details is None else details.cached_tokens


class FunctionDelta(msgspec.Struct, gc=False):
    """A piece of a tool call."""

    name: str | None = None
    arguments: str | None = None


class ToolCallDelta(msgspec.Struct, gc=False):
    """A piece of a tool call; `index` says of which."""

    index: int = 0
    id: str | None = None
    function: FunctionDelta | None = None


class ChatDelta(msgspec.Struct, gc=False):
    """New text of a chat choice, on any of its channels; or the whole message of a reply."""

    content: str | list[Any] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCallDelta] | None = None


class ChatChoice(msgspec.Struct, gc=False):
    """One alternative; almost always the only one."""

    index: int = 0
    delta: ChatDelta | None = None
    message: ChatDelta | None = None
    finish_reason: str | None = None


class ChatEvent(msgspec.Struct, gc=False):
    """An event of a chat stream, or a whole chat reply."""

    choices: list[ChatChoice] | None = None
    usage: Usage | None = None
    error: Any = None


class CompletionChoice(msgspec.Struct, gc=False):
    """One alternative of a plain completion."""

    index: int = 0
    text: str | None = None
    finish_reason: str | None = None


class CompletionEvent(msgspec.Struct, gc=False):
    """An event of a completion's stream, or a whole reply."""

    choices: list[CompletionChoice] | None = None
    usage: Usage | None = None
    error: Any = None


class ResponseBody(msgspec.Struct, gc=False):
    """A response as a whole."""

    status: str | None = None
    output: list[dict[str, Any]] | None = None
    usage: Usage | None = None
    error: Any = None
    incomplete_details: dict[str, Any] | None = None


class ResponseEvent(msgspec.Struct, gc=False):
    """An event of a responses stream; or a whole response, whose fields then lie at the top."""

    type: str = ""
    delta: Any = None
    response: ResponseBody | None = None
    error: Any = None
    message: str | None = None
    object: str | None = None
    status: str | None = None
    output: list[dict[str, Any]] | None = None
    usage: Usage | None = None
    incomplete_details: dict[str, Any] | None = None

    def as_response(self) -> ResponseBody:
        """The whole response that this is."""
        return ResponseBody(
            self.status, self.output, self.usage, self.error, self.incomplete_details
        )


class EmbeddingReply(msgspec.Struct, gc=False):
    """An embeddings reply; the vectors are skipped without being built."""

    data: list[EmbeddingItem] | None = None
    usage: Usage | None = None
    error: Any = None


class EmbeddingItem(msgspec.Struct, gc=False):
    """Says only that there is one."""

    index: int = 0
