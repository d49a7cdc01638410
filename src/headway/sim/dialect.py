"""The seam between the simulated model and the APIs that it is reached by."""

from __future__ import annotations

from typing import Protocol

import msgspec

from headway.sim.messages import Function, Refusal
from headway.sim.reply import ReplyPlan
from headway.sim.script import Script, Usage


class Ask(msgspec.Struct, kw_only=True):
    """What a request asks the model for, whatever API it came by."""

    model: str | None
    prompt: list[str]
    """The prompt's tokens."""
    max_tokens: int | None
    stream: bool
    include_usage: bool = False
    tool: Function | None = None
    """The function that the reply must call."""
    ignore_eos: bool = False
    reasoning: bool = True
    """Whether the model may reason, if it does."""


class Dialect(Protocol):
    """One API: reads its requests and renders its replies."""

    def parse(self, body: bytes) -> Ask | Refusal:
        """What the body asks for, or why it cannot be read."""
        ...

    def script(self, plan: ReplyPlan) -> Script:
        """The events of a streamed reply."""
        ...

    def whole(self, plan: ReplyPlan) -> tuple[bytes, bytes]:
        """A reply in one piece: the JSON before and after its usage."""
        ...

    def usage(self, usage: Usage) -> bytes:
        """Usage as this API writes it."""
        ...

    def error_event(self) -> bytes:
        """The event that reports an error inside a stream, unframed."""
        ...


def cannot_read(error: msgspec.MsgspecError) -> Refusal:
    """The refusal of a body that is no JSON or has fields of wrong types."""
    return Refusal(400, f"The request body cannot be read: {error}.")


def encode(value: object) -> str:
    """`value` as JSON text."""
    return msgspec.json.encode(value).decode()
