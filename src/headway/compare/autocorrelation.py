"""How long a stage remembers: the integrated autocorrelation time of what was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from operator import mul

WINDOW_FACTOR = 5
"""Sokal's window: correlations are summed up to five times their own sum, beyond which the rest
is smaller than the noise that summing it would add."""


def integrated_time(series: Sequence[float]) -> float:
    """The integrated autocorrelation time, in elements of the series; 1 where none is correlated.

    The mean of n elements is as uncertain as the mean of n / τ independent ones.

    Args:
        series: Equally spaced values.

    Source: Sokal, Monte Carlo Methods in Statistical Mechanics (1989), section 3; the correction
    for the mean is that of Wolff, Monte Carlo errors with less errors (Computer Physics
    Communications 156, 2004), equation 49.
    """
    count = len(series)
    mean = math.fsum(series) / count if count else 0.0
    centred = [value - mean for value in series]
    power = sum(map(mul, centred, centred))
    # A rounding error above zero is not a signal whose memory could be measured.
    if power <= 1e-18 * count * mean * mean or power == 0:
        return 1.0
    total, time = 1.0, 1.0
    for lag in range(1, count // 2):
        total += 2 * sum(map(mul, centred, islice(centred, lag, None))) / power
        # Taking the mean off hides as much of every correlation as the mean itself is uncertain.
        time = total / (1 - (2 * lag + 1) / count)
        if lag >= WINDOW_FACTOR * time:
            break
    return max(1.0, time)
