"""The protocol that a backend implements: four methods, and the values that pass through them."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import msgspec

from headway.records.record import Failure

Role = Literal["system", "developer", "user", "assistant", "tool"]


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of a conversation."""

    role: Role
    content: str | list[dict[str, Any]]
    extra: dict[str, Any] | None = None
    """Other fields of the message, passed through as they are (tool calls, names)."""

    def as_text(self) -> str:
        """The text of the content, without images and other parts."""
        if isinstance(self.content, str):
            return self.content
        return "".join([str(part["text"]) for part in self.content if "text" in part])


class Call(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What one request asks for. Plain data: inputs make it, backends render it."""

    messages: tuple[Message, ...] = ()
    """The new messages of this turn; the history goes before them."""
    prompt: str | None = None
    """Plain text, for backends without messages; chat backends send it as one user message."""
    output_tokens: int | None = None
    """The longest reply asked for (`max_tokens` and its kin); None: not asked."""
    body: dict[str, Any] | None = None
    """Fields put into the request's body as they are, over everything else."""
    variables: dict[str, Any] | None = None
    """The input row, for the templates of the generic HTTP backend and for Python callables."""

    def as_messages(self) -> tuple[Message, ...]:
        """What this turn adds to a conversation; a bare prompt is one user message."""
        if self.messages or self.prompt is None:
            return self.messages
        return (Message("user", self.prompt),)

    def as_text(self) -> str:
        """What this turn asks, as plain text."""
        if self.prompt is not None:
            return self.prompt
        return "\n".join([message.as_text() for message in self.messages])


class Progress:
    """What is known of a request while it runs, filled in place by the backend.

    Whatever ends the request, this holds what had happened by then. Times are monotonic ns.
    A backend must set `sent_ns` and `done_ns`; streaming ones set the token times as well.
    """

    __slots__ = (
        "cached_tokens",
        "chunks",
        "connect_ns",
        "connection_reused",
        "done_ns",
        "finish_reason",
        "first_byte_ns",
        "first_content_ns",
        "first_token_ns",
        "gaps_ns",
        "input_tokens",
        "last_token_ns",
        "output_tokens",
        "output_tokens_source",
        "pool_wait_ns",
        "resent",
        "response_bytes",
        "sent_ns",
        "text",
        "tls_ns",
    )

    def __init__(self) -> None:
        self.pool_wait_ns: int | None = None
        self.connect_ns: int | None = None
        self.tls_ns: int | None = None
        self.sent_ns: int | None = None
        self.first_byte_ns: int | None = None
        self.first_token_ns: int | None = None
        self.first_content_ns: int | None = None
        self.last_token_ns: int | None = None
        self.done_ns: int | None = None
        self.chunks: int | None = None
        self.gaps_ns: list[int] | None = None
        self.input_tokens: int | None = None
        self.cached_tokens: int | None = None
        self.output_tokens: int | None = None
        self.output_tokens_source: Literal["usage", "tokenizer", "chunks"] | None = None
        self.finish_reason: str | None = None
        self.response_bytes: int | None = None
        self.connection_reused: bool | None = None
        self.resent: bool = False
        self.text: str | None = None


class Answer(msgspec.Struct, frozen=True):
    """How a request ended: a reply, or the reason why there is none."""

    message: Message | None = None
    """The reply as the next turn's history; None when there is nothing to remember."""
    failure: Failure | None = None


class TargetInfo(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What validation learned of the target; goes into the run's provenance."""

    url: str | None = None
    model: str | None = None
    models: tuple[str, ...] = ()
    server: str | None = None
    """The target's own name and version, where it tells."""
    details: dict[str, Any] | None = None


class Backend(Protocol):
    """Speaks a target's protocol. One instance in each worker, on that worker's event loop."""

    async def startup(self) -> None:
        """Acquire what is needed (connections, files). Called once, before anything else.

        Raises:
            ConfigError: the settings cannot work.
        """
        ...

    async def validate(self) -> TargetInfo:
        """Find out, within the connect and total deadlines, that the target can be measured.

        Raises:
            TargetError: it cannot; the text says why in one sentence.
        """
        ...

    async def resolve(self, call: Call, history: tuple[Message, ...], progress: Progress) -> Answer:
        """Carry out one request, filling `progress` as things happen.

        A failure is a value (`Answer.failure`). An exception is recorded as category `backend`
        with its traceback. On cancellation let `asyncio.CancelledError` pass; fill first what is
        known.
        """
        ...

    async def shutdown(self) -> None:
        """Release everything; called once, also after a failed startup."""
        ...
