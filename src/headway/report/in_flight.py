"""Concurrency from start and end events: exact, because nothing is sampled."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from headway.report.columns import MISSING, Columns
from headway.report.model import Concurrency
from headway.report.window import MeasuredWindow


class InFlight:
    """The number of requests sent and not yet done, at every moment of a stage."""

    def __init__(self, columns: Columns, stage_end_ns: int) -> None:
        """Collect the events; a request without an end is in flight until `stage_end_ns`."""
        rows = columns.only(sent != MISSING for sent in columns.sent)
        ends = (stage_end_ns if done == MISSING else done for done in rows.done)
        # Arrays: a list of a million integers takes five times their space.
        self._starts = array("q", sorted(rows.sent))
        self._ends = array("q", sorted(ends))

    def over(self, window: MeasuredWindow) -> Concurrency | None:
        """Time-weighted mean and maximum over the window; None when either is undefined."""
        if not self._starts or not window.duration_ns:
            return None
        (mean,) = self.means([window.start_ns, window.end_ns])
        return Concurrency(mean=mean, max=self._peak(window))

    def means(self, edges_ns: Sequence[int]) -> list[float]:
        """The time-weighted mean between each two successive, ascending edges."""
        areas = [
            started - ended
            for started, ended in zip(
                _area(self._starts, edges_ns), _area(self._ends, edges_ns), strict=True
            )
        ]
        return [
            (areas[i + 1] - areas[i]) / (edges_ns[i + 1] - edges_ns[i])
            for i in range(len(edges_ns) - 1)
        ]

    def _peak(self, window: MeasuredWindow) -> int:
        starts, ends = self._starts, self._ends
        before = bisect_right(starts, window.start_ns)
        finished = bisect_right(ends, window.start_ns)
        peak = before - finished
        for begun, start in enumerate(starts[before : bisect_right(starts, window.end_ns)], before):
            # A request that ends in the instant in which another starts is no longer in flight.
            while finished < len(ends) and ends[finished] <= start:
                finished += 1
            peak = max(peak, begun + 1 - finished)
        return peak


def _area(times: Sequence[int], edges_ns: Sequence[int]) -> Iterator[int]:
    """For each edge, the sum of (edge − time) over the ascending times before it, in ns."""
    count = total = 0
    for edge in edges_ns:
        while count < len(times) and times[count] <= edge:
            total += times[count]
            count += 1
        yield count * edge - total
