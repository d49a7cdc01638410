"""The steps of a conversation with a server, as plain values.

A flow is a generator: it yields what is to be done (send a call, pause) and is sent what came of
it. Everything that a client decides is therefore written once and tested without a socket; the
synchronous and the asynchronous client only carry the steps out.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")
Query = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Call:
    """One HTTP request.

    Attributes:
        repeatable: Sending it twice does what sending it once does, so a lost answer may be asked
            for again: reads, cancellations, and submissions that carry an Idempotency-Key.
        read_timeout_s: How long the server may be silent.
    """

    method: str
    path: str
    query: Query = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    repeatable: bool = True
    read_timeout_s: float = 30.0


@dataclass(frozen=True)
class Pause:
    """Wait before the next step."""

    seconds: float


@dataclass(frozen=True)
class Reply:
    """An answer of the server, whatever its status. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Lost:
    """No answer: the connection was refused, broke, or stayed silent for too long."""

    reason: str


Step = Call | Pause
Answer = Reply | Lost | None
Flow = Generator[Step, Answer, T]
