"""From values to places on an axis, and the ticks that people like to read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

LOG_FROM_RATIO = 40
"""Values further apart than this cannot share a linear axis: the small ones lie on its floor."""


@dataclass(frozen=True)
class Scale:
    """Maps [low, high] to [start, end] pixels, linearly or by logarithm."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """The pixel of a value; values beyond the ends stay on the end."""
        value = min(max(value, self.low), self.high)
        if self.logarithmic:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 5) -> list[float]:
        """Round values within the scale."""
        if self.logarithmic:
            return _log_ticks(self.low, self.high, most)
        step = nice_step((self.high - self.low) / most)
        first = math.ceil(self.low / step - 1e-9)
        count = math.floor(self.high / step + 1e-9) - first + 1
        return [round((first + i) * step, 12) for i in range(count)]


def nice_step(rough: float) -> float:
    """The next 1, 2 or 5 times a power of ten at or above `rough` > 0."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))


def fitting_scale(
    values: Sequence[float], start: float, end: float, *, may_be_log: bool = False
) -> Scale:
    """A scale from zero (or, logarithmic, from below the least) to just above the greatest."""
    highest = max(values, default=0.0)
    positive = [value for value in values if value > 0]
    if may_be_log and positive and highest / min(positive) > LOG_FROM_RATIO:
        return Scale(_round_down(min(positive)), _round_up(highest), start, end, logarithmic=True)
    if highest <= 0:
        return Scale(0.0, 1.0, start, end)
    step = nice_step(highest / 5)
    return Scale(0.0, math.ceil(highest * 1.02 / step) * step, start, end)


def _round_down(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return max(factor * power for factor in (1, 2, 5) if factor * power <= value * (1 + 1e-9))


def _round_up(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return min(factor * power for factor in (1, 2, 5, 10) if factor * power >= value)


def _log_ticks(low: float, high: float, most: int) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = [
            factor * 10.0**power
            for power in powers
            for factor in factors
            if low * (1 - 1e-9) <= factor * 10.0**power <= high * (1 + 1e-9)
        ]
        if len(found) <= most + 2:
            return found
    return found[:: -(-len(found) // most)]
