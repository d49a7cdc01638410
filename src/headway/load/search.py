"""The highest rate at which a target meets its objectives: which rate to try next, and when to end.

Pure: the answer follows from what was observed, so that a run that lost its process goes on where
it was, and that the statistics can be tested on simulated targets.

Rates lie on a grid, each a fixed share above the one before. Whether a stage at a rate meets the
objectives is a matter of chance near the limit, so each stage is an observation and none is final.
A rate is *shown* to meet them when its stages met them so often that a rate which meets only half
of the time would hardly have done so (a sign test; Conover, Practical Nonparametric Statistics,
section 3.4), and *rejected* when it can no longer be shown within the stages that one rate is
given. Before that it counts as met or missed by its majority. The search halves the gap between
the lowest rate that missed and the highest below it that met until they are neighbours (a noisy
bisection), then observes both until the upper one is rejected and the lower one shown. What turns
over moves the boundary, and the search goes on there. So the answer is the highest rate that was
shown to meet, which near a blurred limit lies below the rate that meets half of the time.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

_MOST_AT_A_RATE = 9
"""Stages at one rate. With 95% asked, 5 of 5 or 7 of 8 show it, and two misses reject it."""
_UNUSABLE = 2
"""Stages that the client spoiled, before a rate counts as more than the client can do."""

Seen = Literal["met", "missed", "unusable"]
Why = Literal["missed", "asked", "client", "saturation"]
"""What keeps the answer from being higher: the objectives, the highest rate that was asked, what
the client can do, or what the target completes at most."""


@dataclass(frozen=True)
class Observation:
    """One stage: its rate in requests per second, and what became of the objectives there.

    Attributes:
        seen: `unusable`: the client, not the target, decided the numbers.
    """

    rate_per_s: float
    seen: Seen


@dataclass(frozen=True)
class Bounds:
    """Where to look.

    Attributes:
        low_per_s: The lowest rate that is tried.
        high_per_s: The highest rate that is tried.
        high_is: Why not higher.
    """

    low_per_s: float
    high_per_s: float
    high_is: Why = "asked"


@dataclass(frozen=True)
class Answer:
    """The end of a search.

    Attributes:
        rate_per_s: The highest rate that meets the objectives; None: not even the lowest does.
        met: Stages at that rate that met them.
        stages: Usable stages at that rate.
        confidence: 1 minus the chance that a rate which meets the objectives only half of the time
            would have met them as often.
        next_per_s: The lowest rate that is too high; None: nothing higher was tried.
        next_missed: Stages there that missed.
        next_stages: Usable stages there.
        next_is: Why the next rate is out of reach.
        settled: Whether the rate was shown, and the next one rejected, before the stages ran out.
    """

    rate_per_s: float | None
    met: int
    stages: int
    confidence: float
    next_per_s: float | None
    next_missed: int
    next_stages: int
    next_is: Why
    settled: bool


@dataclass
class _Cell:
    """What was observed at one rate."""

    confidence: float
    """Asked, to call the rate shown."""
    met: int = 0
    missed: int = 0
    unusable: int = 0

    @property
    def stages(self) -> int:
        return self.met + self.missed

    @property
    def exceeds_client(self) -> bool:
        return self.unusable >= _UNUSABLE

    @property
    def is_shown(self) -> bool:
        return 1 - sign_test(self.met, self.stages) >= self.confidence

    @property
    def is_rejected(self) -> bool:
        left = max(0, _MOST_AT_A_RATE - self.stages - self.unusable)
        best = 1 - sign_test(self.met + left, self.stages + left)
        return self.exceeds_client or best < self.confidence

    @property
    def is_met(self) -> bool:
        return self.met > self.missed and not self.is_rejected

    @property
    def is_missed(self) -> bool:
        return self.missed > self.met or self.is_rejected

    @property
    def is_open(self) -> bool:
        """Seen, and neither."""
        return self.stages + self.unusable > 0 and not self.is_met and not self.is_missed


@dataclass
class RateSearch:
    """Where a search stands.

    Args:
        bounds: Where to look.
        precision: The next rate of the grid is higher by this share.
        confidence: How sure the answer must be, below 1.
        most_stages: Observations after which the search ends with what it knows.
    """

    bounds: Bounds
    precision: float = 0.05
    confidence: float = 0.95
    most_stages: int = 40
    _grid: Sequence[float] = field(init=False)
    _cells: list[_Cell] = field(init=False)
    _observed: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._grid = rate_grid(self.bounds.low_per_s, self.bounds.high_per_s, self.precision)
        self._cells = [_Cell(self.confidence) for _ in self._grid]

    def observe(self, observations: Iterable[Observation]) -> None:
        """Take in what stages showed, in any order."""
        for one in observations:
            place = max(0, bisect_right(self._grid, one.rate_per_s * (1 + 1e-9)) - 1)
            cell = self._cells[place]
            setattr(cell, one.seen, getattr(cell, one.seen) + 1)
            self._observed += 1

    def next_rate_per_s(self) -> float | None:
        """The rate of the next stage; None: the answer stands."""
        if self._observed >= self.most_stages:
            return None
        place = self._next_place()
        return None if place is None else self._grid[place]

    def answer(self) -> Answer:
        """What is known now."""
        low, high = self._boundary()
        above = self._cells[high] if high < len(self._cells) else None
        below = self._cells[low] if low >= 0 else None
        next_is: Why = self.bounds.high_is
        if above is not None:
            next_is = "client" if above.exceeds_client else "missed"
        return Answer(
            rate_per_s=self._grid[low] if below else None,
            met=below.met if below else 0,
            stages=below.stages if below else 0,
            confidence=1 - sign_test(below.met, below.stages) if below else 0.0,
            next_per_s=self._grid[high] if above else None,
            next_missed=above.missed if above else 0,
            next_stages=above.stages if above else 0,
            next_is=next_is,
            settled=self._next_place() is None,
        )

    def _boundary(self) -> tuple[int, int]:
        """Places of the highest rate that meets and of the lowest above it that misses."""
        cells = self._cells
        high = next((i for i, cell in enumerate(cells) if cell.is_missed), len(cells))
        low = next((i for i in range(high - 1, -1, -1) if cells[i].is_met), -1)
        return low, high

    def _next_place(self) -> int | None:
        low, high = self._boundary()
        undecided = [i for i in range(low + 1, high) if self._cells[i].is_open]
        if undecided:
            return undecided[0]
        if high - low > 1:
            return (low + high) // 2
        if high < len(self._cells) and not self._cells[high].is_rejected:
            return high
        if low >= 0 and not self._cells[low].is_shown:
            return low
        return None


def rate_grid(low_per_s: float, high_per_s: float, precision: float) -> list[float]:
    """Rates from low to high, each higher by the share `precision`, with three digits each.

    More digits would feign precision, and nobody could type them again.
    """
    steps = math.floor(math.log(max(high_per_s / low_per_s, 1.0)) / math.log1p(precision) + 1e-9)
    rates = (low_per_s * (1 + precision) ** step for step in range(steps + 1))
    return sorted({float(f"{rate:.3g}") for rate in rates})


def sign_test(hits: int, trials: int) -> float:
    """The chance of at least `hits` heads in `trials` throws of a fair coin."""
    return math.ldexp(sum(math.comb(trials, k) for k in range(hits, trials + 1)), -trials)
