"""Reads which turns of a row wait for which, and puts them into an order in which they can go."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from headway.backends.backend import Call
from headway.load.inputs.conversation import Links
from headway.load.inputs.fields import seconds
from headway.load.inputs.placeholders import placeholders
from headway.load.inputs.problems import GraphError

_FIELDS = ("id", "after", "history")


class Bound(NamedTuple):
    """A turn at its place in the order."""

    position: int
    """Its place in the row, from 0."""
    links: Links | None
    """By numbers in the order; None: it waits for the turn before it, as in a chain."""


def bind_turns(entries: Sequence[dict[str, Any]], calls: Sequence[Call]) -> list[Bound]:
    """The turns of a row, each after all that it waits for, else in the row's order.

    Args:
        entries: What the row says of each.
        calls: The call of each, for the placeholders in its texts.

    Raises:
        GraphError: they cannot be brought into an order, or one refers to what it cannot know.
    """
    if not any(map(_is_bound, entries)):
        return [Bound(position, None) for position in range(len(entries))]
    return _RowGraph(entries, calls).bound()


class _RowGraph:
    """The graph of one row, by positions."""

    def __init__(self, entries: Sequence[dict[str, Any]], calls: Sequence[Call]) -> None:
        self._entries = entries
        self._calls = calls
        self._positions: dict[str, int] = {}
        for position, entry in enumerate(entries):
            self._name(position, entry.get("id"))
        self._after = [self._waits(position) for position in range(len(entries))]
        self._order = self._sorted()
        self._before = self._ancestors()

    def bound(self) -> list[Bound]:
        ranks = {position: rank for rank, position in enumerate(self._order)}
        return [Bound(position, self._links(position, ranks)) for position in self._order]

    def _name(self, position: int, value: Any) -> None:
        if value is None:
            return
        name = _id(value)
        if name is None:
            raise GraphError(f"the id of turn {position + 1} is neither a text nor a number")
        if name in self._positions:
            raise GraphError(f"two turns have the id {name!r}")
        self._positions[name] = position

    def _waits(self, position: int) -> tuple[int, ...]:
        given = self._entries[position].get("after")
        if given is None:
            return (position - 1,) if position else ()
        return self._found(position, given, "after")

    def _found(self, position: int, given: Any, field: str) -> tuple[int, ...]:
        """The positions of the turns that a field names, in its order."""
        names = given if isinstance(given, list) else [given]
        found: list[int] = []
        for value in names:
            name = _id(value)
            if name is None:
                raise GraphError(f"{field} of {self._title(position)} is not a list of ids")
            if name not in self._positions:
                raise GraphError(f"{field} of {self._title(position)} names {name!r}, {_NO_TURN}")
            if self._positions[name] in found:
                raise GraphError(f"{field} of {self._title(position)} names {name!r} twice")
            found.append(self._positions[name])
        return tuple(found)

    def _sorted(self) -> list[int]:
        followers: list[list[int]] = [[] for _ in self._after]
        for position, parents in enumerate(self._after):
            for parent in parents:
                followers[parent].append(position)
        missing = [len(parents) for parents in self._after]
        free = [position for position, number in enumerate(missing) if not number]
        order = []
        while free:
            order.append(heapq.heappop(free))
            for position in followers[order[-1]]:
                missing[position] -= 1
                if not missing[position]:
                    heapq.heappush(free, position)
        if len(order) < len(missing):
            raise GraphError(self._in_a_circle(set(range(len(missing))).difference(order)))
        return order

    def _in_a_circle(self, stuck: set[int]) -> str:
        # Whoever is stuck waits for one that is stuck: going back from one leads into a circle.
        way = [min(stuck)]
        while way.count(way[-1]) < 2:
            way.append(next(parent for parent in self._after[way[-1]] if parent in stuck))
        circle = way[way.index(way[-1]) :]
        return (
            f"turns wait for each other in a circle: {' after '.join(map(self._title, circle))} "
            "(a turn without `after` waits for the one before it)"
        )

    def _ancestors(self) -> list[int]:
        """Of each turn all that are completed when it is sent, as bits."""
        before = [0] * len(self._after)
        for position in self._order:
            for parent in self._after[position]:
                before[position] |= before[parent] | 1 << parent
        return before

    def _links(self, position: int, ranks: dict[int, int]) -> Links | None:
        entry, after = self._entries[position], self._after[position]
        history = None
        if entry.get("history") is not None:
            history = self._found(position, entry["history"], "history")
            self._check_before(position, history, "has {} in its history")
        made = Links(
            after=_ranked(after, ranks),
            think_times_s=self._think_times(position, after),
            history=None if history is None else _ranked(history, ranks),
            answers={name: ranks[source] for name, source in self._answers(position).items()},
        )
        rank = ranks[position]
        if made.history == made.after:
            made = Links(made.after, made.think_times_s, None, made.answers)
        # Spelled out or not, a plain chain is the same workload.
        return None if made == Links((rank - 1,) if rank else ()) else made

    def _think_times(self, position: int, after: tuple[int, ...]) -> tuple[float | None, ...]:
        given = self._entries[position].get("think_time_s")
        if not isinstance(given, dict):
            return ()
        times: dict[int, float | None] = {}
        for name, value in given.items():
            (source,) = self._found(position, name, "think_time_s")
            if source not in after:
                raise GraphError(
                    f"think_time_s of {self._title(position)} names {name!r}, which is not in its "
                    "`after`"
                )
            times[source] = seconds(value, "think_time_s")
        return tuple(times.get(source) for source in after)

    def _answers(self, position: int) -> dict[str, int]:
        # Files without ids were written without placeholders in mind.
        if not self._positions or self._entries[position].get("placeholders") is False:
            return {}
        found: dict[str, int] = {}
        for name in placeholders(self._calls[position]):
            if name not in self._positions:
                raise GraphError(
                    f"{self._title(position)} has the placeholder {{{{{name}}}}}, {_NO_TURN} "
                    '("placeholders": false in the turn leaves its text as it is)'
                )
            found[name] = self._positions[name]
        self._check_before(position, found.values(), "has the answer of {} in its text")
        return found

    def _check_before(self, position: int, sources: Iterable[int], how: str) -> None:
        for source in sources:
            if not self._before[position] >> source & 1:
                text = how.format(self._title(source))
                raise GraphError(f"{self._title(position)} {text}, for which it does not wait")

    def _title(self, position: int) -> str:
        name = self._entries[position].get("id")
        return f"turn {position + 1}" if name is None else f"turn {str(name)!r}"


_NO_TURN = "which is no turn of the row"


def _is_bound(entry: dict[str, Any]) -> bool:
    is_named = any(entry.get(name) is not None for name in _FIELDS)
    return is_named or isinstance(entry.get("think_time_s"), dict)


def _id(value: Any) -> str | None:
    if isinstance(value, str) and value:
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _ranked(positions: tuple[int, ...], ranks: dict[int, int]) -> tuple[int, ...]:
    return tuple(ranks[position] for position in positions)
