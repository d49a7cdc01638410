"""What inputs give to a worker: conversations, by the index of their arrival."""

from __future__ import annotations

from typing import Protocol

import msgspec

from headway.backends.backend import Call


class Turn(msgspec.Struct, frozen=True):
    """One request of a conversation."""

    call: Call
    think_time_s: float = 0.0
    """Seconds between the end of the turn before and this one's due time; 0 in the first turn."""


class Conversation(msgspec.Struct, frozen=True):
    """The turns that follow from one arrival; a single request is a conversation of one turn."""

    turns: tuple[Turn, ...]


class Inputs(Protocol):
    """Content by index: a pure function of (recipe, seed, stage, index).

    Any worker may ask for any index in any order, so the number of workers cannot change what
    is sent.
    """

    def conversation(self, index: int) -> Conversation | None:
        """The conversation of the arrival `index` (>= 0); None: the inputs have come to an end."""
        ...

    def close(self) -> None:
        """Close files; safe to call twice."""
        ...
