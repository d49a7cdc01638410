"""What the members of the OpenAI family differ in: the question's form and the reply's."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from headway.backends.backend import Call, Message
from headway.backends.openai_events import Usage
from headway.backends.stream import EventDecoder


class ReplySummary(msgspec.Struct, frozen=True, kw_only=True):
    """A reply, or as much of it as came."""

    text: str | None = None
    message: Message | None = None
    usage: Usage | None = None
    finish_reason: str | None = None
    error: str | None = None
    """What the server said went wrong, inside a reply of status 200."""


class DialectReply(Protocol):
    """Collects the events of one reply; a whole reply counts as one event."""

    def add(self, events: list[Any]) -> tuple[int, bool]:
        """Take the events of one read: (how many carried tokens, whether one carried content)."""
        ...

    def summary(self) -> ReplySummary:
        """What is known by now."""
        ...


class Dialect(Protocol):
    """One endpoint of the API."""

    @property
    def path(self) -> str:
        """Below the API's prefix."""
        ...

    @property
    def output_tokens_field(self) -> str | None:
        """What the longest reply is called in its body; None: it cannot be asked."""
        ...

    @property
    def can_stream(self) -> bool: ...

    @property
    def can_include_usage(self) -> bool:
        """Whether `stream_options.include_usage` exists there."""
        ...

    @property
    def decoder(self) -> EventDecoder[Any]: ...

    def is_reply(self, event: Any) -> bool:
        """Whether a decoded object is a whole reply of this endpoint, or says what went wrong."""
        ...

    def question(self, call: Call, history: tuple[Message, ...]) -> dict[str, Any]:
        """The fields of the body that hold what is asked."""
        ...

    def new_reply(self) -> DialectReply: ...

    def plain_summary(self, event: Any) -> ReplySummary | None:
        """What a whole reply says when it is plain text; None: `new_reply` has to find out."""
        ...
