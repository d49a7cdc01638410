"""Handing work to workers: never more than they need, never less than keeps them busy.

Open loop: the schedule is read here, in order, and each arrival goes to a worker by its index, a
bounded time ahead of its due time. Closed loop: arrivals are granted on demand, so that no worker
sits on work that another could do (trap 42).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Protocol

from headway.core.clock import NS_PER_S
from headway.load.ledger import Ledger, Unfinished
from headway.load.messages import Arrivals, Grants

_MAX_OUTSTANDING = 50_000
"""Arrivals out at one worker. An overloaded cap would otherwise move the whole schedule into the
workers' memory; 50,000 keep a worker busy for several reports at any rate it can reach."""
_MAX_GRANT = 8_192
_READ_AT_ONCE = 1_000
_QUICK_NS = 50_000_000
_SLOW_NS = 500_000_000


class Receiver(Protocol):
    """A worker, as the handout sees it."""

    @property
    def number(self) -> int:
        """Which worker it is."""
        ...

    def send(self, message: Arrivals | Grants) -> None:
        """Queue a message to it."""
        ...


class Handout(Protocol):
    """What a stage asks of either kind of handing out."""

    @property
    def is_finished(self) -> bool:
        """Whether everything there is was given out, whatever the time."""
        ...

    @property
    def schedule_ended(self) -> bool:
        """Whether it is finished because the arrival process came to its end."""
        ...

    def begin(self, workers: Sequence[Receiver], start_ns: int) -> None:
        """Give out what the start needs."""
        ...

    def advance(self, workers: Sequence[Receiver], now_ns: int) -> None:
        """Give out what time has brought near."""
        ...

    def wanted(self, worker: Receiver, now_ns: int) -> None:
        """A worker is about to run out."""
        ...

    def takes_back(self, unfinished: Unfinished, now_ns: int) -> bool:
        """Whether an arrival of a dead worker can still be given to another."""
        ...

    def give_again(self, workers: Sequence[Receiver], arrivals: Sequence[Unfinished]) -> None:
        """Give arrivals that were taken back to other workers."""
        ...

    def unsent_before(self, cut_ns: int) -> Iterator[tuple[int, int]]:
        """(index, due) of arrivals that fell due before the cut and were never given out."""
        ...


class OpenLoopHandout:
    """Gives out a schedule of due times by index.

    Args:
        stage: The stage's number.
        schedule: Offsets from the stage's start in order, from the arrival process.
        start_ns: The stage's start, absolute.
        limits: How much there is to give.
        ledger: Learns of everything given out.
    """

    def __init__(
        self,
        stage: int,
        schedule: Iterator[int],
        start_ns: int,
        limits: HandoutLimits,
        ledger: Ledger,
    ) -> None:
        self._stage = stage
        self._schedule = schedule
        self._start_ns = start_ns
        self._limits = limits
        self._ledger = ledger
        self._next_index = 0
        self._peeked: int | None = None
        self.schedule_ended = False
        """Whether the arrival process came to its end."""

    @property
    def is_finished(self) -> bool:
        """Whether everything there is was given out, whatever the time."""
        return self.schedule_ended or self._limits.reached(self._next_index)

    def begin(self, workers: Sequence[Receiver], start_ns: int) -> None:
        """Give out the first arrivals."""
        self.advance(workers, start_ns)

    def wanted(self, worker: Receiver, now_ns: int) -> None:
        """Open loop: time alone gives out work."""

    def advance(self, workers: Sequence[Receiver], now_ns: int) -> None:
        """Give out what falls due within the time ahead, as far as the workers have room."""
        if self.is_finished or not workers:
            return
        room = min(_MAX_OUTSTANDING - self._ledger.outstanding(w.number) for w in workers)
        first = self._next_index
        due = self._read(now_ns + self._limits.ahead_ns, max(0, room) * len(workers))
        if due:
            self._distribute(workers, first, due)

    def takes_back(self, unfinished: Unfinished, now_ns: int) -> bool:
        """An arrival not due yet cannot have been sent: another worker sends it in time."""
        return unfinished.due_ns > now_ns

    def give_again(self, workers: Sequence[Receiver], arrivals: Sequence[Unfinished]) -> None:
        """Give arrivals that were taken back to other workers, in the order of their due times."""
        step = len(workers)
        for position, worker in enumerate(workers):
            for arrival in arrivals[position::step]:
                self._give(worker, arrival.index, 1, array("q", [arrival.due_ns]))

    def unsent_before(self, cut_ns: int) -> Iterator[tuple[int, int]]:
        """(index, due) of arrivals that fell due before the cut and were never given out."""
        while due := self._read(cut_ns - 1, _READ_AT_ONCE):
            yield from enumerate(due, self._next_index - len(due))

    def _read(self, until_ns: int, limit: int) -> array[int]:
        due = array("q")
        while len(due) < limit:
            due_ns = self._peek()
            if due_ns is None or due_ns > until_ns:
                break
            due.append(due_ns)
            self._peeked = None
            self._next_index += 1
        return due

    def _peek(self) -> int | None:
        if self._peeked is None:
            if self._limits.reached(self._next_index):
                return None
            offset_ns = next(self._schedule, None)
            if offset_ns is None:
                self.schedule_ended = True
                return None
            self._peeked = self._start_ns + offset_ns
        end_ns = self._limits.end_ns
        return None if end_ns is not None and self._peeked >= end_ns else self._peeked

    def _distribute(self, workers: Sequence[Receiver], first: int, due: array[int]) -> None:
        step = len(workers)
        for position, worker in enumerate(workers):
            offset = (position - first) % step
            share = due[offset::step]
            if share:
                self._give(worker, first + offset, step, share)

    def _give(self, worker: Receiver, first: int, step: int, due: array[int]) -> None:
        indices = range(first, first + step * len(due), step)
        self._ledger.hand_out(worker.number, indices, due)
        worker.send(Arrivals(self._stage, first, step, due.tobytes()))


class ClosedLoopHandout:
    """Grants arrivals to the workers that ask.

    Near the end of a limited stage the grants shrink to a share of what is left (guided
    self-scheduling: Polychronopoulos and Kuck, 1987), so that all workers finish together.
    """

    def __init__(
        self, stage: int, slots: dict[int, int], limits: HandoutLimits, ledger: Ledger
    ) -> None:
        self._stage = stage
        self._slots = slots
        self._limits = limits
        self._ledger = ledger
        self._next_index = 0
        self.schedule_ended = False
        self._asked_ns: dict[int, int] = {}
        self._size: dict[int, int] = {}

    @property
    def is_finished(self) -> bool:
        """Whether everything there is was given out."""
        return self._limits.reached(self._next_index)

    def advance(self, workers: Sequence[Receiver], now_ns: int) -> None:
        """Closed loop: completions alone give out work."""

    def takes_back(self, unfinished: Unfinished, now_ns: int) -> bool:
        """What was granted may have been sent: it is lost with its worker."""
        return False

    def give_again(self, workers: Sequence[Receiver], arrivals: Sequence[Unfinished]) -> None:
        """Never has anything to give."""

    def unsent_before(self, cut_ns: int) -> Iterator[tuple[int, int]]:
        """Nothing: in a closed loop only a request that begins falls due."""
        return iter(())

    def begin(self, workers: Sequence[Receiver], start_ns: int) -> None:
        """Give each worker one arrival a slot, or an equal part where there are fewer."""
        for position, worker in enumerate(workers):
            share = self._slots[worker.number]
            left = self._limits.left(self._next_index)
            if left is not None:
                share = min(share, -(-left // (len(workers) - position)))
            self._grant(worker, share, start_ns)

    def wanted(self, worker: Receiver, now_ns: int) -> None:
        """A worker is about to run out."""
        number = worker.number
        waited_ns = now_ns - self._asked_ns.get(number, now_ns - _QUICK_NS)
        self._asked_ns[number] = now_ns
        floor = 1 + self._slots[number] // 8
        size = self._size.get(number, floor)
        if waited_ns < _QUICK_NS:
            size = min(_MAX_GRANT, size * 2)
        elif waited_ns > _SLOW_NS:
            size = max(floor, size // 2)
        self._size[number] = size
        left = self._limits.left(self._next_index)
        if left is not None:
            size = min(size, max(1, left // (2 * len(self._slots))))
        self._grant(worker, size, now_ns)

    def _grant(self, worker: Receiver, size: int, due_ns: int) -> None:
        left = self._limits.left(self._next_index)
        size = size if left is None else min(size, left)
        if size <= 0:
            return
        first, self._next_index = self._next_index, self._next_index + size
        self._ledger.hand_out(worker.number, range(first, first + size), [due_ns] * size)
        worker.send(Grants(self._stage, first, size))


class HandoutLimits:
    """How much of a stage's work there is, as far as it is known.

    Args:
        max_arrivals: No more than this; None: endless.
        end_ns: Nothing due at or after this (absolute); None: no end.
        ahead_s: How far ahead of its due time an arrival may be given out.
    """

    def __init__(self, max_arrivals: int | None, end_ns: int | None, ahead_s: float) -> None:
        self._max_arrivals = max_arrivals
        self.end_ns = end_ns
        self.ahead_ns = round(ahead_s * NS_PER_S)

    def exhausted_at(self, index: int) -> None:
        """The inputs have nothing for this arrival nor any later one."""
        if self._max_arrivals is None or index < self._max_arrivals:
            self._max_arrivals = index

    def left(self, next_index: int) -> int | None:
        """How many arrivals there are from `next_index` on; None: no end known."""
        return None if self._max_arrivals is None else max(0, self._max_arrivals - next_index)

    def reached(self, next_index: int) -> bool:
        """Whether `next_index` is past the last arrival."""
        return self.left(next_index) == 0


def divide(total: int, parts: int) -> list[int]:
    """Split a global limit over workers exactly: the shares add up to `total`."""
    share, rest = divmod(total, parts)
    return [share + 1 if part < rest else share for part in range(parts)]
