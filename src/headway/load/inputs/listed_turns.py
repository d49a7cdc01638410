"""Reads the turns that a row spells out, one by one, with what binds them."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from headway.backends.backend import Call
from headway.load.inputs.conversation import Links
from headway.load.inputs.fields import (
    OUTPUT_TOKENS_NAMES,
    PROMPT_NAMES,
    FieldNames,
    body_of,
    prompt_text,
    seconds,
    whole_number,
)
from headway.load.inputs.messages import parse_messages
from headway.load.inputs.problems import RowError
from headway.load.inputs.turn_graph import bind_turns


class StoredTurn(msgspec.Struct, frozen=True, omit_defaults=True):
    """A turn as the file has it, before the spec's distributions are applied."""

    call: Call
    think_time_s: float | None = None
    links: Links | None = None
    """None: it waits for the turn before it."""

    @property
    def begins(self) -> bool:
        """Whether it is known to wait for no turn (the first of a row waits for none either)."""
        return self.links is not None and not self.links.after

    @property
    def hears_nothing(self) -> bool:
        """Whether it is known to have no history."""
        return self.links is not None and not self.links.sources


class ListedTurn(NamedTuple):
    """A turn, and what the row says of it."""

    turn: StoredTurn
    entry: dict[str, Any]


def read_turns(entries: list[Any], needs_text: bool = True) -> list[ListedTurn]:
    """The turns of a row, each after all that it waits for, else in the row's order.

    Args:
        entries: Each a text or an object.
        needs_text: Whether a turn without text is an error.

    Raises:
        RowError: a turn cannot be used.
        GraphError: the turns do not fit together.
    """
    if not entries:
        raise RowError("turns is empty")
    named = [_entry(number, one) for number, one in enumerate(entries, 1)]
    turns = [_turn(number, one, needs_text) for number, one in enumerate(named, 1)]
    return [
        ListedTurn(msgspec.structs.replace(turns[position], links=links), named[position])
        for position, links in bind_turns(named, [turn.call for turn in turns])
    ]


def _entry(number: int, entry: Any) -> dict[str, Any]:
    if isinstance(entry, str):
        return {"prompt": entry}
    if not isinstance(entry, dict):
        raise RowError(f"turn {number} is neither a text nor an object")
    return entry


def _turn(number: int, entry: dict[str, Any], needs_text: bool) -> StoredTurn:
    names = FieldNames(entry)
    think_time_s = entry.get("think_time_s")
    if isinstance(think_time_s, dict):
        think_time_s = None  # One for each turn that it waits for: read with these.
    output_tokens = whole_number(names.first(OUTPUT_TOKENS_NAMES), "output_tokens")
    messages, prompt = names.first(("messages",)), names.first(PROMPT_NAMES)
    if messages is not None:
        call = Call(messages=parse_messages(messages), output_tokens=output_tokens)
    elif prompt is None and not needs_text:
        call = Call(output_tokens=output_tokens)
    else:
        call = Call(prompt=prompt_text(prompt, f"turn {number}"), output_tokens=output_tokens)
    return StoredTurn(
        msgspec.structs.replace(call, body=body_of(entry)),
        None if think_time_s is None else seconds(think_time_s, "think_time_s"),
    )
