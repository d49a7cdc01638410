"""Percentiles: one definition, used everywhere.

The percentile q of n values is the smallest value that at least the share q of them does not
exceed: nearest rank, rank ⌈q·n⌉ (Hyndman and Fan, 1996, definition 1). It is always a value that
was measured, so it can lie neither above the maximum (trap 54) nor between a success and a failure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from headway.report.model import (
    INFINITY,
    DurationSummary,
    FailurePercentiles,
    PercentileName,
    TokenSummary,
)

PER_MILLE: dict[PercentileName, int] = {
    "p50": 500,
    "p75": 750,
    "p90": 900,
    "p95": 950,
    "p99": 990,
    "p999": 999,
}
"""The reported percentiles, in thousandths: whole numbers keep the rank exact."""

CONFIDENCE_MISS = 0.025
"""How unlikely it must be that all samples lie below the true percentile: 97.5% one-sided."""


def rank(count: int, per_mille: int) -> int:
    """The 1-based nearest rank ⌈q·n⌉ of a percentile among `count` > 0 values."""
    return max(1, -(-per_mille * count // 1000))


def percentile(ordered: Sequence[float], per_mille: int) -> float:
    """The nearest-rank percentile of ascending, non-empty values."""
    return ordered[rank(len(ordered), per_mille) - 1]


def samples_needed(per_mille: int) -> int:
    """How many samples a percentile needs before the sample can bound it from above.

    With n independent samples, all lie below the true quantile q with probability q^n; until that
    is at most 2.5%, no upper confidence limit of 97.5% exists within the sample (David and
    Nagaraja, Order Statistics, section 7.1): 6 for p50, 36 for p90, 368 for p99, 3688 for p99.9.
    """
    return math.ceil(math.log(CONFIDENCE_MISS) / math.log(per_mille / 1000))


def trusted_percentiles(count: int) -> list[PercentileName]:
    """The percentiles that `count` samples can bound."""
    return [name for name, per_mille in PER_MILLE.items() if count >= samples_needed(per_mille)]


def summarise_durations(ordered: Sequence[float]) -> DurationSummary | None:
    """Summarise ascending durations in seconds; None when there are none."""
    if not ordered:
        return None
    mean = math.fsum(ordered) / len(ordered)
    # The distance from the point (mean, mean, ...) is √Σ(value − mean)², computed in C.
    sd = math.dist(ordered, [mean] * len(ordered)) / math.sqrt(len(ordered))
    points = {f"{name}_s": percentile(ordered, q) for name, q in PER_MILLE.items()}
    return DurationSummary(
        count=len(ordered),
        # A mean of equal values may come out one bit above them.
        mean_s=min(max(mean, ordered[0]), ordered[-1]),
        sd_s=sd,
        min_s=ordered[0],
        max_s=ordered[-1],
        trusted=trusted_percentiles(len(ordered)),
        **points,
    )


def failures_as_infinite(ordered: Sequence[float], failed: int) -> FailurePercentiles | None:
    """Percentiles of successes and failures together, a failure lasting for ever.

    Args:
        ordered: Ascending durations of the requests that completed, in seconds.
        failed: How many did not.

    Returns:
        None when nothing failed (the plain percentiles say it all).
    """
    if not failed:
        return None
    total = len(ordered) + failed
    points: dict[str, float | str] = {}
    for name, per_mille in PER_MILLE.items():
        position = rank(total, per_mille)
        points[f"{name}_s"] = ordered[position - 1] if position <= len(ordered) else INFINITY
    return FailurePercentiles(count=total, failed=failed, **points)  # type: ignore[arg-type] # keys are the struct's fields


def summarise_tokens(counts: Iterable[int]) -> TokenSummary | None:
    """Summarise token counts of requests; None when none is known."""
    ordered = sorted(counts)
    if not ordered:
        return None
    total = sum(ordered)
    return TokenSummary(
        count=len(ordered),
        total_tokens=total,
        mean_tokens=total / len(ordered),
        min_tokens=ordered[0],
        p50_tokens=int(percentile(ordered, 500)),
        p95_tokens=int(percentile(ordered, 950)),
        max_tokens=ordered[-1],
    )
