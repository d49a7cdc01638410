"""Reads recorded sessions of agents: when each began, what waited for what, how long it took.

One session a line: `timestamp` in milliseconds and `turns`, each with what a listed turn has
(`id`, `after`, `history`, `think_time_s`), its lengths, and when it was recorded: `offset_ms`,
since the session's timestamp, and `duration_ms`. The gap between the last turn that it waited for
and its own start becomes its think time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from headway.core.clock import ns_from_s
from headway.load.inputs.conversation import lineage, links_of
from headway.load.inputs.listed_turns import ListedTurn, StoredTurn, read_turns
from headway.load.inputs.problems import GraphError, RowError

_MS_PER_S = 1_000


class SessionTurn(msgspec.Struct, frozen=True, omit_defaults=True):
    """A turn of a session; where its call has no text, that is made."""

    turn: StoredTurn
    input_tokens: int | None = None
    """Of the whole prompt, history included."""
    blocks: tuple[int, ...] = ()

    @property
    def has_text(self) -> bool:
        """Whether the file says what is sent."""
        return self.turn.call.prompt is not None or bool(self.turn.call.messages)

    @property
    def words(self) -> int:
        """The words of its own text."""
        return len(self.turn.call.as_text().split()) if self.has_text else 0


Session = tuple[SessionTurn, ...]
Length = Callable[[Any, str], int | None]


class SessionReader:
    """Reads sessions.

    Args:
        length: Reads a length.
        blocks: Reads the names of blocks.
    """

    def __init__(self, length: Length, blocks: Callable[[Any], tuple[int, ...]]) -> None:
        self._length = length
        self._blocks = blocks
        self.shortened = 0
        """Turns recorded with a shorter prompt than the history that goes before it."""

    def read(self, fields: dict[str, Any], started_ns: int) -> tuple[int, Session]:
        """The turns of a session, and when its first turn began.

        Raises:
            RowError: it cannot be used.
            GraphError: its turns do not fit together.
        """
        entries = fields.get("turns")
        if not isinstance(entries, list):
            raise RowError("no turns")
        listed = read_turns(entries, needs_text=False)
        clock = _RecordedTimes(listed)
        session = tuple(
            self._turn(one, clock.think_time_s(number)) for number, one in enumerate(listed)
        )
        self._count_shortened(session)
        return started_ns + ns_from_s(clock.first_s), session

    def _turn(self, listed: ListedTurn, think_time_s: float) -> SessionTurn:
        entry = listed.entry
        return SessionTurn(
            msgspec.structs.replace(listed.turn, think_time_s=think_time_s),
            self._length(entry.get("input_length"), "input_length"),
            self._blocks(entry.get("hash_ids")),
        )

    def _count_shortened(self, session: Session) -> None:
        asked = [one.turn.call.output_tokens or 0 for one in session]
        new = new_tokens(session, asked, lambda number: session[number].words)
        for one, length in zip(session, new, strict=True):
            self.shortened += not one.has_text and one.input_tokens is not None and length < 1


def new_tokens(
    session: Session, asked: Sequence[int], unrecorded: Callable[[int], int]
) -> list[int]:
    """How long the new text of each turn is: its prompt's length without its history.

    Args:
        session: The turns.
        asked: The length of each answer.
        unrecorded: Gives the new text's length of a turn whose prompt's length was not recorded.

    Returns:
        For each turn its own tokens, below 1 where its history alone is as long as it was.
    """
    history = [links_of(number, one.turn.links).sources for number, one in enumerate(session)]
    new: list[int] = []
    for number, one in enumerate(session):
        if one.input_tokens is None:
            new.append(unrecorded(number))
            continue
        heard = lineage(number, history)
        new.append(one.input_tokens - sum(max(1, new[turn]) + asked[turn] for turn in heard))
    return new


class _RecordedTimes:
    """When the turns of a session ran, since its timestamp."""

    def __init__(self, listed: Sequence[ListedTurn]) -> None:
        self._listed = listed
        self._offsets = [_seconds(one.entry, "offset_ms") for one in listed]
        self._durations = [_seconds(one.entry, "duration_ms") for one in listed]
        begins = [number for number in range(len(listed)) if not self._after(number)]
        self.first_s = min(map(self.think_time_s, begins))
        """When the first turn was sent."""

    def think_time_s(self, number: int) -> float:
        """What is said, else the gap that was recorded, else none."""
        listed, offset = self._listed[number], self._offsets[number]
        if listed.turn.think_time_s is not None:
            return listed.turn.think_time_s
        after = self._after(number)
        if offset is None or not after:
            return offset or 0.0
        return max(0.0, offset - max(self._end_s(number, parent) for parent in after))

    def _end_s(self, number: int, parent: int) -> float:
        offset, duration = self._offsets[parent], self._durations[parent]
        if offset is None or duration is None:
            raise GraphError(
                f"{self._title(number)} has an offset_ms, and {self._title(parent)}, for which it "
                "waits, lacks offset_ms or duration_ms: the gap between them is not known"
            )
        return offset + duration

    def _after(self, number: int) -> tuple[int, ...]:
        return links_of(number, self._listed[number].turn.links).after

    def _title(self, number: int) -> str:
        name = self._listed[number].entry.get("id")
        return f"turn {number + 1}" if name is None else f"turn {str(name)!r}"


def _seconds(entry: dict[str, Any], name: str) -> float | None:
    value = entry.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        raise RowError(f"{name} is not a number of at least 0: {str(value)[:40]!r}")
    return value / _MS_PER_S
