"""What was handed to each worker and has not come back: the reason no request is ever lost.

Filled when work is handed out, emptied by reports. What a dead worker leaves here is exactly what
needs a terminal record that the worker can no longer write.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import msgspec


class Unfinished(msgspec.Struct, frozen=True):
    """An arrival that a worker took along."""

    index: int
    due_ns: int
    ended_turns: frozenset[int] = frozenset()
    """Turns of its conversation that have their record."""


class Ledger:
    """The arrivals of one stage that are out at workers."""

    def __init__(self) -> None:
        self._out: dict[int, dict[int, int]] = {}
        self._ended_turns: dict[int, set[int]] = {}
        self.ended = 0
        """Arrivals that have all their records: the arrivals that were offered."""

    def hand_out(self, worker: int, indices: Iterable[int], due_ns: Iterable[int]) -> None:
        """A worker was sent these arrivals."""
        self._out.setdefault(worker, {}).update(zip(indices, due_ns, strict=True))

    def outstanding(self, worker: int) -> int:
        """How many arrivals are out at a worker."""
        return len(self._out.get(worker, ()))

    def report(
        self, worker: int, ended: bytes, open_turns: list[tuple[int, int]], dropped: bytes
    ) -> None:
        """A worker reported: what ended whole, what ended in part, what was never offered."""
        out = self._out[worker]
        for index, turn in open_turns:
            self._ended_turns.setdefault(index, set()).add(turn)
        for index in _numbers(ended):
            del out[index]
            self.ended += 1
            self._ended_turns.pop(index, None)
        for index in _numbers(dropped):
            del out[index]

    def worker_lost(self, worker: int) -> list[Unfinished]:
        """Take everything back that was out at a worker."""
        out = self._out.pop(worker, {})
        return [
            Unfinished(index, due_ns, frozenset(self._ended_turns.pop(index, ())))
            for index, due_ns in sorted(out.items())
        ]


def _numbers(data: bytes) -> array[int]:
    numbers = array("q")
    numbers.frombytes(data)
    return numbers
