"""How long a stage remembers: the integrated autocorrelation time of what was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from operator import mul

WINDOW_FACTOR = 5
"""Sokal's window: correlations are summed up to five times their own sum, beyond which the rest
is smaller than the noise that summing it would add."""


@dataclass(frozen=True)
class Memory:
    """An integrated autocorrelation time, in elements of a series, and its standard error.

    The mean of n elements is as uncertain as the mean of n / `time` independent ones.
    """

    time: float
    error: float = 0.0

    @property
    def cautious(self) -> float:
        """One standard error longer.

        Of runs near the limit those pass whose time came out too short, and it is for them that
        an interval would be too narrow.
        """
        return self.time + self.error


def memory(series: Sequence[float]) -> Memory:
    """The integrated autocorrelation time of a series; 1 where nothing is correlated.

    Args:
        series: Equally spaced values.

    Source: Sokal, Monte Carlo Methods in Statistical Mechanics (1989), section 3; the correction
    for the mean is that of Wolff, Monte Carlo errors with less errors (Computer Physics
    Communications 156, 2004), equation 49, and the standard error is that of equation 42.
    """
    count = len(series)
    mean = math.fsum(series) / count if count else 0.0
    centred = [value - mean for value in series]
    power = sum(map(mul, centred, centred))
    # A rounding error above zero is not a signal whose memory could be measured.
    if power <= 1e-18 * count * mean * mean or power == 0:
        return Memory(1.0)
    total, time, lag = 1.0, 1.0, 0
    for lag in range(1, count // 2):
        total += 2 * sum(map(mul, centred, islice(centred, lag, None))) / power
        # Taking the mean off hides as much of every correlation as the mean itself is uncertain.
        time = total / (1 - (2 * lag + 1) / count)
        if lag >= WINDOW_FACTOR * time:
            break
    time = max(1.0, time)
    return Memory(time, time * math.sqrt(2 * (2 * lag + 1) / count))
