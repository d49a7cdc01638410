"""What is compared: a table of measures, each with its direction and its scale."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from headway.compare.model import Scale
from headway.report.conditions import error_share
from headway.report.model import StageReport

DURATIONS = ("ttft", "latency", "response", "tpot")
PERCENTILES = {"p50": 500, "p95": 950, "p99": 990}


@dataclass(frozen=True)
class Metric:
    """One number of a stage.

    Args:
        name: With its unit.
        measure: The duration it is a percentile of, or what it is a ratio of.
        per_mille: The percentile, for durations.
        better: Which way is good.
        scale: Whether changes are fractions of A, or differences.
    """

    name: str
    measure: str
    per_mille: int | None
    better: Literal["lower", "higher"]
    scale: Scale

    def read(self, stage: StageReport) -> float | None:
        """The number in a report."""
        return _READERS[self.measure](stage) if self.per_mille is None else _point(self, stage)

    def scaled(self, value: float) -> float:
        """On the scale on which differences are taken.

        Raises:
            ValueError: a relative change from or to nothing.
        """
        return math.log(value) if self.scale == "relative" else value

    def change(self, difference: float) -> float:
        """A difference on that scale as the change that people read."""
        return math.expm1(min(difference, 700.0)) if self.scale == "relative" else difference


def _all() -> tuple[Metric, ...]:
    durations = [
        Metric(f"{measure}_{point}_s", measure, per_mille, "lower", "relative")
        for measure in DURATIONS
        for point, per_mille in PERCENTILES.items()
    ]
    return (
        *durations,
        Metric("completed_per_s", "completed", None, "higher", "relative"),
        Metric("output_tokens_per_s", "tokens", None, "higher", "relative"),
        Metric("error_share", "errors", None, "lower", "absolute"),
        Metric("good_share", "good", None, "higher", "absolute"),
    )


def _point(metric: Metric, stage: StageReport) -> float | None:
    summary = getattr(stage, metric.measure)
    point = metric.name.removeprefix(f"{metric.measure}_")
    return None if summary is None else getattr(summary, point)


_READERS: dict[str, Callable[[StageReport], float | None]] = {
    "completed": lambda stage: stage.rates.completed_per_s,
    "tokens": lambda stage: stage.rates.output_tokens_per_s,
    "errors": error_share,
    "good": lambda stage: stage.goodput.good_share if stage.goodput else None,
}

METRICS = _all()


def cliffs_delta(a: Sequence[float], b: Sequence[float]) -> float | None:
    """P(b > a) − P(b < a) for a value drawn from each; None when either is empty.

    Source: Cliff, Dominance statistics (Psychological Bulletin 114, 1993).
    """
    if not a or not b:
        return None
    ordered = sorted(a)
    count = len(ordered)
    balance = sum(bisect_left(ordered, x) + bisect_right(ordered, x) - count for x in b)
    return balance / (count * len(b))


def cohens_h(a: float, b: float) -> float:
    """The difference of two shares on the arcsine scale (Cohen 1988, chapter 6)."""
    return 2 * math.asin(math.sqrt(b)) - 2 * math.asin(math.sqrt(a))
