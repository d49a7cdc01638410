"""What inputs give to a worker: conversations, by the index of their arrival."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import msgspec

from headway.backends.backend import Call


class Links(msgspec.Struct, frozen=True, omit_defaults=True):
    """What binds a turn to others, all by their numbers, which are lower than its own."""

    after: tuple[int, ...]
    """The turns that must have completed before it; none: it begins with the conversation."""
    think_times_s: tuple[float | None, ...] = ()
    """One for each of `after`; None, and where there are none: the turn's own think time."""
    history: tuple[int, ...] | None = None
    """The turns of which it hears, and whatever those had heard; None: `after`."""
    answers: dict[str, int] = {}
    """Placeholders in its texts: each name with the turn whose answer goes there."""

    @property
    def sources(self) -> tuple[int, ...]:
        """The turns of which it hears."""
        return self.after if self.history is None else self.history


class Turn(msgspec.Struct, frozen=True):
    """One request of a conversation."""

    call: Call
    think_time_s: float = 0.0
    """Seconds between the end of a turn that it waits for and its due time. Of a turn that waits
    for none: after the first such turn of the conversation, which is due at its arrival."""
    links: Links | None = None
    """None: it waits for the turn before it, if there is one."""


class Conversation(msgspec.Struct, frozen=True):
    """The turns that follow from one arrival; a single request is a conversation of one turn."""

    turns: tuple[Turn, ...]


@lru_cache(maxsize=1_024)
def _chain_links(number: int) -> Links:
    return Links((number - 1,) if number else ())


def links_of(number: int, links: Links | None) -> Links:
    """What binds turn `number`: spelled out, or the place in a chain that it has by default."""
    return _chain_links(number) if links is None else links


def lineage(number: int, history: Sequence[tuple[int, ...]]) -> list[int]:
    """The turns whose messages go before those of a turn, in their order.

    Each of its sources in the order listed, before each what that one had heard, none twice. Of a
    chain these are simply the turns before.

    Args:
        number: The turn.
        history: The sources of each turn.
    """
    order: list[int] = []
    seen: set[int] = set()
    waiting = [(source, False) for source in reversed(history[number])]
    while waiting:
        turn, is_heard = waiting.pop()
        if is_heard:
            order.append(turn)
        elif turn not in seen:
            seen.add(turn)
            waiting.append((turn, True))
            waiting.extend((source, False) for source in reversed(history[turn]))
    return order


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
