"""Whether a stage was steady: a trend test over equal blocks of time."""

from __future__ import annotations

import math
import statistics
from array import array
from collections.abc import Sequence
from typing import Literal

from headway.core.clock import NS_PER_S
from headway.report.columns import MISSING, Columns
from headway.report.in_flight import InFlight
from headway.report.model import Trend
from headway.report.window import MeasuredWindow

BLOCKS = 10
MIN_PER_BLOCK = 5
"""A median of fewer says little; a stage that has fewer in a block is not tested."""


def mann_kendall_z(values: Sequence[float]) -> float:
    """The normal approximation of the Mann-Kendall trend statistic, with the tie correction.

    Source: Mann (1945), Econometrica 13; Kendall, Rank Correlation Methods (1975), chapter 4.
    """
    n = len(values)
    score = sum(
        (values[j] > values[i]) - (values[j] < values[i]) for i in range(n) for j in range(i + 1, n)
    )
    ties = [values.count(value) for value in set(values)]
    variance = (
        n * (n - 1) * (2 * n + 5) - sum(size * (size - 1) * (2 * size + 5) for size in ties)
    ) / 18
    if variance <= 0 or score == 0:
        return 0.0
    return math.copysign(abs(score) - 1, score) / math.sqrt(variance)


def trends(completed: Columns, in_flight: InFlight, window: MeasuredWindow) -> list[Trend]:
    """Test TTFT, response time and requests in flight for a trend over the window.

    Args:
        completed: The completed requests that were due in the window.
        in_flight: The stage's concurrency.
        window: Cut into ten blocks of equal time.

    Returns:
        One trend for each measure that has enough data in every block.
    """
    if window.duration_ns < BLOCKS:
        return []
    edges = [window.start_ns + window.duration_ns * i // BLOCKS for i in range(BLOCKS + 1)]
    found = [
        _trend("ttft_s", _block_medians(completed, completed.first_token, completed.sent, edges)),
        _trend("response_s", _block_medians(completed, completed.done, completed.due, edges)),
    ]
    if any(found):
        found.append(_trend("in_flight", in_flight.means(edges)))
    return [trend for trend in found if trend is not None]


def _block_medians(
    columns: Columns, ends: Sequence[int], starts: Sequence[int], edges: Sequence[int]
) -> list[float] | None:
    blocks = [array("q") for _ in range(BLOCKS)]
    origin, width = edges[0], edges[-1] - edges[0]
    for due, start, end in zip(columns.due, starts, ends, strict=True):
        if end != MISSING and start != MISSING:
            blocks[min(BLOCKS - 1, (due - origin) * BLOCKS // width)].append(end - start)
    if any(len(block) < MIN_PER_BLOCK for block in blocks):
        return None
    return [statistics.median(block) / NS_PER_S for block in blocks]


def _trend(
    measure: Literal["ttft_s", "response_s", "in_flight"], blocks: list[float] | None
) -> Trend | None:
    if blocks is None:
        return None
    third = BLOCKS // 3
    first, last = statistics.median(blocks[:third]), statistics.median(blocks[-third:])
    if first <= 0:
        return None
    return Trend(
        measure=measure,
        blocks=blocks,
        first=first,
        last=last,
        change_share=(last - first) / first,
        z=mann_kendall_z(blocks),
    )
