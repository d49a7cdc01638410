"""The seam between the simulated model and the APIs that it is reached by."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import msgspec

from headway.sim.messages import Function, Refusal
from headway.sim.reply import ReplyPlan
from headway.sim.script import IDENT, Script, Usage


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
    payload: bytes = b""
    """What the dialect rendered while it read the request; it gets it back with the plan."""


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


class Memoized:
    """A dialect that renders each shape of reply once.

    Args:
        dialect: Renders.
        shapes: How many shapes are kept; a shape of 128 tokens takes about 30 KB.
    """

    def __init__(self, dialect: Dialect, shapes: int) -> None:
        self.parse = dialect.parse
        self.usage = dialect.usage
        self.error_event = dialect.error_event
        self.script = lru_cache(shapes)(dialect.script)
        self.whole = lru_cache(shapes)(dialect.whole)
        self.burst = lru_cache(shapes)(self._burst)

    def _burst(self, plan: ReplyPlan) -> tuple[bytes, ...]:
        """All events up to the last token, cut where the identifier goes.

        Joining the parts puts it in 8 times faster than replacing a marker does (3.6 against 29 µs
        for 128 events).
        """
        script = self.script(plan)
        return tuple(b"".join((script.opening, *script.frames)).split(IDENT))


def cannot_read(error: msgspec.MsgspecError) -> Refusal:
    """The refusal of a body that is no JSON or has fields of wrong types."""
    return Refusal(400, f"The request body cannot be read: {error}.")


def encode(value: object) -> str:
    """`value` as JSON text."""
    return msgspec.json.encode(value).decode()
