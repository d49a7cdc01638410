"""A stage's data cut into blocks of time, as long as its own memory asks for."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from headway.compare.autocorrelation import memory
from headway.compare.bootstrap import Blocked, BlockedQuantile, BlockedRatio
from headway.core.clock import NS_PER_S
from headway.report.columns import COMPLETED, ERRORED, MISSING, Columns
from headway.report.goodput import good_dues_ns, tpot_s
from headway.report.objectives import ObjectiveSpec
from headway.report.series import tokens_between
from headway.report.stage import measured_part
from headway.report.stage_data import StageData

BINS = 400
"""Into so many bins a stage is cut to see how long it remembers: ten for each of 40 blocks."""

MAX_BLOCKS = 40
"""More blocks gain little: Student's 97.5% quantile is 2.02 at 40 and 1.96 at infinitely many."""

MIN_BLOCKS = 8
"""With fewer blocks, Student's quantile and the noise of a spread over so few eat every gain."""

BLOCK_TIMES = 5
"""Block length over autocorrelation time. Whole blocks must be all but independent: where the
memory fades exponentially, blocks of twice its time constant (one integrated time) show 43% too
little variance, blocks of ten times 10%, which is corrected."""


@dataclass(frozen=True)
class Blocks:
    """One measure of one stage in blocks, ready for the bootstrap."""

    data: Blocked
    variance_share: float
    """How much of the variance blocks of this length show; below 1 where memory crosses them."""


@dataclass(frozen=True)
class TooShort:
    """The stage remembers for too large a part of its length."""

    memory_s: float
    """The integrated autocorrelation time."""
    needed_s: float
    """How long the stage would have to be."""


class StageSamples:
    """The measured part of one stage.

    Args:
        data: The stage's records and events.
        objectives: What makes a request good.
    """

    def __init__(self, data: StageData, objectives: ObjectiveSpec) -> None:
        data.flush()
        self._columns = data.columns
        self._window, self._offered = measured_part(data)
        self._done = self._offered.completed()
        self._objectives = objectives
        self._durations: dict[str, Durations] = {}

    def durations(self, measure: str) -> Durations:
        """One of `ttft`, `latency`, `response`, `tpot` of the completed requests."""
        done = self._done
        values = _DURATIONS[measure](done)
        return Durations(*_known(done.due, values), self._window.start_ns, self._window.duration_ns)

    def completions(self) -> Ratio:
        """Requests completed in the window, per second."""
        done = self._columns.completed().done
        moments = (at for at in done if self._window.holds(at))
        return self._ratio(self._counts(moments), self._seconds())

    def output_tokens(self) -> Ratio | None:
        """Output tokens in the window, per second; None: not known."""
        amounts = tokens_between(self._columns.completed(), self._edges())
        return None if amounts is None else self._ratio(amounts, self._seconds())

    def errors(self) -> Ratio:
        """Failed requests over those that ended by themselves."""
        rows = zip(self._offered.status, self._offered.due, strict=True)
        ended = [(status, due) for status, due in rows if status in (COMPLETED, ERRORED)]
        failed = self._counts(due for status, due in ended if status == ERRORED)
        return self._ratio(failed, self._counts(due for _, due in ended))

    def good(self) -> Ratio | None:
        """Good requests over offered ones; None: no objective was set."""
        if not self._objectives.model_dump(exclude_none=True):
            return None
        good = self._counts(good_dues_ns(self._offered, self._objectives))
        return self._ratio(good, self._counts(self._offered.due))

    def _ratio(self, above: Sequence[float], below: Sequence[float]) -> Ratio:
        return Ratio(above, below, self._window.duration_ns)

    def _counts(self, moments: Iterable[int]) -> list[float]:
        counts = [0.0] * BINS
        for at in moments:
            counts[_place(at - self._window.start_ns, self._window.duration_ns, BINS)] += 1
        return counts

    def _edges(self) -> list[int]:
        start, length = self._window.start_ns, self._window.duration_ns
        return [start + length * i // BINS for i in range(BINS + 1)]

    def _seconds(self) -> list[float]:
        return [(end - start) / NS_PER_S for start, end in pairwise(self._edges())]


class Durations:
    """Durations of requests by the time at which each was due."""

    def __init__(
        self, due_ns: array[int], values_s: array[float], start_ns: int, length_ns: int
    ) -> None:
        self._due_ns, self.values_s = due_ns, values_s
        self._start_ns, self._length_ns = start_ns, length_ns
        self._memories: dict[float, float] = {}

    def blocks(self, share: float) -> Blocks | TooShort:
        """Blocks for the quantile `share`."""
        # The tail's own memory is measured by few requests and looks shorter than it is: with
        # blocks for it alone, 10% of the p99 of equal runs with a memory of 2 s seemed to differ.
        time = max(self._memory(share), self._memory(0.5))
        count = block_count(time)
        if count.blocks < MIN_BLOCKS:
            return _too_short(time, self._length_ns)
        groups: list[list[float]] = [[] for _ in range(count.blocks)]
        for place, value in zip(self._places(count.blocks), self.values_s, strict=True):
            groups[place].append(value)
        return Blocks(BlockedQuantile(groups, share), count.variance_share)

    def _memory(self, share: float) -> float:
        """The autocorrelation time, in bins and cautious, of being beyond the quantile."""
        if share not in self._memories:
            ordered = sorted(self.values_s)
            limit = ordered[max(0, math.ceil(share * len(ordered) - 1e-9) - 1)]
            series = [0.0] * BINS
            for place, value in zip(self._places(BINS), self.values_s, strict=True):
                series[place] += (value > limit) - (1 - share)
            self._memories[share] = memory(series).cautious
        return self._memories[share]

    def _places(self, count: int) -> list[int]:
        start, length = self._start_ns, self._length_ns
        return [_place(due - start, length, count) for due in self._due_ns]


class Ratio:
    """A sum over a sum, both in bins of time."""

    def __init__(self, above: Sequence[float], below: Sequence[float], length_ns: int) -> None:
        self._above, self._below = above, below
        self._length_ns = length_ns

    @property
    def value(self) -> float | None:
        """Of the whole stage; None: nothing below the line."""
        below = math.fsum(self._below)
        return math.fsum(self._above) / below if below else None

    def blocks(self) -> Blocks | TooShort:
        """Blocks for the ratio."""
        value = self.value or 0.0
        pairs = zip(self._above, self._below, strict=True)
        time = memory([above - value * below for above, below in pairs]).cautious
        count = block_count(time)
        if count.blocks < MIN_BLOCKS:
            return _too_short(time, self._length_ns)
        above, below = (_grouped(part, count.blocks) for part in (self._above, self._below))
        return Blocks(BlockedRatio(above, below), count.variance_share)


@dataclass(frozen=True)
class BlockCount:
    """Into how many blocks a stage may be cut, and what share of the variance they show."""

    blocks: int
    variance_share: float


def block_count(time: float) -> BlockCount:
    """The most blocks, up to 40, of which each is five autocorrelation times long.

    Args:
        time: The integrated autocorrelation time, in bins.
    """
    blocks = min(MAX_BLOCKS, int(BINS / (BLOCK_TIMES * time)))
    # Exact for a memory that fades exponentially; 1 where there is none.
    hidden = (time - 1 / time) / 2 * blocks / BINS
    return BlockCount(blocks, 1 - hidden)


def _place(offset: int, length: int, count: int) -> int:
    return min(count - 1, max(0, offset * count // length)) if length else 0


def _grouped(values: Sequence[float], count: int) -> list[float]:
    sums = [0.0] * count
    for i, value in enumerate(values):
        sums[i * count // len(values)] += value
    return sums


def _too_short(time: float, length_ns: int) -> TooShort:
    memory_s = time * length_ns / BINS / NS_PER_S
    return TooShort(memory_s=memory_s, needed_s=memory_s * BLOCK_TIMES * MIN_BLOCKS)


def _known(
    due_ns: Sequence[int], values: Iterable[float | None]
) -> tuple[array[int], array[float]]:
    rows = [(due, v) for due, v in zip(due_ns, values, strict=True) if v is not None]
    return array("q", (due for due, _ in rows)), array("d", (value for _, value in rows))


def _between(starts: Sequence[int], ends: Sequence[int]) -> list[float | None]:
    return [
        None if MISSING in (start, end) else (end - start) / NS_PER_S
        for start, end in zip(starts, ends, strict=True)
    ]


_DURATIONS: dict[str, Callable[[Columns], Iterable[float | None]]] = {
    "ttft": lambda done: _between(done.sent, done.first_token),
    "latency": lambda done: _between(done.sent, done.done),
    "response": lambda done: _between(done.due, done.done),
    "tpot": lambda done: map(tpot_s, done.first_token, done.last_token, done.output_tokens),
}
