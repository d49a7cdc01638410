"""Student's t distribution: exact for any degrees of freedom, also for the few of an A/B run."""

from __future__ import annotations

import math

_TERMS = 200
_PRECISION = 1e-14
_HALVINGS = 200


def student_t_cdf(value: float, freedom: float) -> float:
    """The probability that Student's t lies below `value`.

    Args:
        value: A finite number.
        freedom: Degrees of freedom, > 0; need not be whole.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.1 and 26.5.2.
    """
    beyond = _incomplete_beta(freedom / (freedom + value * value), freedom / 2, 0.5) / 2
    return 1 - beyond if value > 0 else beyond


def student_t_quantile(share: float, freedom: float) -> float:
    """The value below which the share `share` of Student's t lies, 0 < share < 1."""
    if share < 0.5:
        return -student_t_quantile(1 - share, freedom)
    low, high = 0.0, 1.0
    while student_t_cdf(high, freedom) < share:
        low, high = high, high * 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if student_t_cdf(middle, freedom) >= share else (middle, high)
    return high


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    log_front = a * math.log(x) + b * math.log1p(-x)
    log_front -= math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    front = math.exp(log_front)
    # The continued fraction converges fast on this side of the mean only; the other is its mirror.
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(x, a, b) / a
    return 1 - front * _beta_fraction(1 - x, b, a) / b


def _beta_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method (A&S 26.5.8)."""
    tiny = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or tiny)
    value = d
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / (1 + term * d or tiny)
            c = 1 + term / c or tiny
            value *= c * d
        if abs(c * d - 1) < _PRECISION:
            break
    return value
