"""The block bootstrap: how far a stage's statistic would move if the stage were run again.

Requests of one run are not independent: they share queues and batches, so one slow second makes
many slow requests. Resampling single requests would call chance a difference. Whole blocks of time
are resampled instead, and the statistic's spread over the resamples is its standard error.

Source: Künsch, The jackknife and the bootstrap for general stationary observations (Annals of
Statistics 17, 1989); Lahiri, Resampling Methods for Dependent Data (2003), chapters 2 and 7.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist, stdev
from typing import Protocol

RESAMPLES = 500
"""Resamples per statistic. The standard error of a standard error is about 1/√(2·500) = 3%."""

MINIMUM_BLOCKS = 8
"""Below this many blocks a spread over blocks says next to nothing."""

MAXIMUM_BLOCKS = 40


@dataclass(frozen=True)
class Estimate:
    """A statistic of one run and how uncertain it is."""

    value: float
    standard_error: float
    blocks: int
    """How many blocks of time it rests on."""


class Blocked(Protocol):
    """Data in blocks of time, of which a statistic can be taken with blocks repeated."""

    def __len__(self) -> int:
        """How many blocks there are."""
        ...

    def statistic(self, weights: Sequence[int]) -> float | None:
        """The statistic when block k counts `weights[k]` times; None: it is undefined."""
        ...


class BlockedQuantile:
    """The nearest-rank quantile of values in blocks.

    Args:
        blocks: The values of each block, in any order.
        share: Which quantile, 0 < share < 1.
    """

    def __init__(self, blocks: Sequence[Sequence[float]], share: float) -> None:
        self._blocks = [sorted(block) for block in blocks]
        self._ordered = sorted(value for block in blocks for value in block)
        self._share = share

    def __len__(self) -> int:
        return len(self._blocks)

    def statistic(self, weights: Sequence[int]) -> float | None:
        taken = [
            (weight, block) for weight, block in zip(weights, self._blocks, strict=True) if weight
        ]
        total = sum(w * len(block) for w, block in taken)
        if total == 0:
            return None
        needed = max(1, math.ceil(self._share * total))
        low, high = 0, len(self._ordered) - 1
        while low < high:
            middle = (low + high) // 2
            below = sum(w * bisect_right(block, self._ordered[middle]) for w, block in taken)
            low, high = (low, middle) if below >= needed else (middle + 1, high)
        return self._ordered[low]


class BlockedRatio:
    """A sum over a sum: a mean, a rate, a share.

    Args:
        numerators: The part of each block above the line (sum of values, tokens, good requests).
        denominators: The part below it (number of values, seconds, offered requests).
    """

    def __init__(self, numerators: Sequence[float], denominators: Sequence[float]) -> None:
        self._pairs = list(zip(numerators, denominators, strict=True))

    def __len__(self) -> int:
        return len(self._pairs)

    def statistic(self, weights: Sequence[int]) -> float | None:
        above = math.fsum(w * pair[0] for w, pair in zip(weights, self._pairs, strict=True))
        below = math.fsum(w * pair[1] for w, pair in zip(weights, self._pairs, strict=True))
        return above / below if below else None


def estimate(data: Blocked, scale: Callable[[float], float], rng: random.Random) -> Estimate | None:
    """The statistic on `scale`, with the bootstrap's standard error.

    Args:
        data: The run's data in blocks of equal time.
        scale: Applied before the spread is taken: `math.log` where ratios are compared.
        rng: The comparison's only generator.

    Returns:
        None where there are too few blocks, or the statistic is undefined.
    """
    count = len(data)
    whole = data.statistic([1] * count)
    if count < MINIMUM_BLOCKS or whole is None:
        return None
    values = []
    for _ in range(RESAMPLES):
        weights = [0] * count
        for chosen in rng.choices(range(count), k=count):
            weights[chosen] += 1
        value = data.statistic(weights)
        if value is not None:
            values.append(scale(value))
    # Resampling K blocks with replacement gives (K − 1)/K of the variance that K blocks have.
    spread = stdev(values) * math.sqrt(count / (count - 1))
    return Estimate(value=scale(whole), standard_error=spread, blocks=count)


@dataclass(frozen=True)
class Difference:
    """B minus A on the scale of the estimates, with its confidence interval."""

    value: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out no difference at all."""
        return self.low > 0 or self.high < 0


def difference(a: Estimate, b: Estimate, confidence: float) -> Difference:
    """Welch's interval for B − A, from two independent estimates.

    Source: Welch, The generalization of Student's problem (Biometrika 34, 1947); the degrees of
    freedom are Satterthwaite's, with one less than the blocks of each run.
    """
    variance_a, variance_b = a.standard_error**2, b.standard_error**2
    variance = variance_a + variance_b
    if variance == 0:
        return Difference(b.value - a.value, b.value - a.value, b.value - a.value)
    freedom = variance**2 / (variance_a**2 / (a.blocks - 1) + variance_b**2 / (b.blocks - 1))
    reach = student_t_quantile(0.5 + confidence / 2, freedom) * math.sqrt(variance)
    centre = b.value - a.value
    return Difference(centre, centre - reach, centre + reach)


def student_t_quantile(share: float, freedom: float) -> float:
    """The quantile of Student's t, good to three decimals for four degrees of freedom and more.

    Source: the Cornish-Fisher expansion around the normal quantile (Abramowitz and Stegun,
    Handbook of Mathematical Functions, 26.7.5).
    """
    z = NormalDist().inv_cdf(share)
    g1 = (z**3 + z) / 4
    g2 = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    g3 = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    g4 = (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160
    return z + g1 / freedom + g2 / freedom**2 + g3 / freedom**3 + g4 / freedom**4
