"""Distributions reduced to what a chart needs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from headway.report.model import Curve, Histogram
from headway.report.quantiles import percentile

GRID_PER_MILLE = (*range(0, 990, 10), 990, 992, 994, 995, 996, 998, 999, 1000)
HISTOGRAM_BINS = 48


def curve(ordered: Sequence[float]) -> Curve | None:
    """Quantiles on the grid and a histogram of ascending durations; None when there are none."""
    if not ordered:
        return None
    return Curve(
        shares=[q / 1000 for q in GRID_PER_MILLE],
        quantiles_s=[percentile(ordered, q) for q in GRID_PER_MILLE],
        histogram=histogram(ordered),
    )


def histogram(ordered: Sequence[float]) -> Histogram:
    """Equal bins, the last one open: what lies beyond is counted in it.

    One straggler at twenty times the median would squeeze all others into two bars. The bins
    therefore end at p99 plus a quarter, unless the maximum is not far beyond that.
    """
    low, high = ordered[0], ordered[-1]
    reach = low + 1.25 * (percentile(ordered, 990) - low)
    if high > low + 2 * (reach - low) and reach > low:
        high = reach
    bins = HISTOGRAM_BINS if high > low else 1
    edges = [low + (high - low) * i / bins for i in range(bins)] + [high]
    below = [bisect_left(ordered, edge) for edge in edges[:-1]] + [len(ordered)]
    return Histogram(edges_s=edges, counts=[below[i + 1] - below[i] for i in range(bins)])
