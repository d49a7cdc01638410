"""The difference of two estimates: its interval, and how easily chance explains it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from headway.compare.bootstrap import Estimate
from headway.compare.student_t import student_t_cdf, student_t_quantile


@dataclass(frozen=True)
class Difference:
    """B minus A on the scale of the estimates, with its uncertainty."""

    value: float
    standard_error: float
    freedom: float

    def interval(self, confidence: float) -> tuple[float, float]:
        """The two-sided interval that holds the true difference with this confidence."""
        reach = self.standard_error * student_t_quantile(0.5 + confidence / 2, self.freedom)
        return self.value - reach, self.value + reach

    def chance(self) -> float:
        """The p-value: how often chance alone makes a difference as large, either way."""
        return min(1.0, 2 * (1 - self.exceeds(0.0)) if self.value > 0 else 2 * self.exceeds(0.0))

    def exceeds(self, limit: float) -> float:
        """The confidence that the true difference lies above `limit`."""
        if self.standard_error == 0:
            return 0.5 if self.value == limit else float(self.value > limit)
        return student_t_cdf((self.value - limit) / self.standard_error, self.freedom)


def independent(a: Estimate, b: Estimate) -> Difference:
    """The difference of two runs that share nothing.

    Source: Welch, The generalization of Student's problem (Biometrika 34, 1947), with
    Satterthwaite's degrees of freedom.
    """
    variance_a, variance_b = a.standard_error**2, b.standard_error**2
    variance = variance_a + variance_b
    if variance == 0:
        return Difference(b.value - a.value, 0.0, a.freedom + b.freedom)
    freedom = variance**2 / (variance_a**2 / a.freedom + variance_b**2 / b.freedom)
    return Difference(b.value - a.value, math.sqrt(variance), freedom)


def paired(differences: Sequence[float]) -> Difference:
    """The mean difference of two or more pairs, by Student's paired test."""
    count = len(differences)
    mean = math.fsum(differences) / count
    squares = math.fsum((value - mean) ** 2 for value in differences)
    return Difference(mean, math.sqrt(squares / (count - 1) / count), count - 1)


def holm(chances: Sequence[float], miss: float) -> list[bool]:
    """Which of several p-values still count when all were looked at.

    Looking at twenty true zeros at 5% each finds one difference on average. By this rule, any at
    all is found in at most `miss` of such looks.

    Source: Holm, A simple sequentially rejective multiple test procedure (Scandinavian Journal of
    Statistics 6, 1979).
    """
    counted = [False] * len(chances)
    order = sorted(range(len(chances)), key=chances.__getitem__)
    for place, index in enumerate(order):
        if chances[index] > miss / (len(chances) - place):
            break
        counted[index] = True
    return counted
