from __future__ import annotations

import math

import pytest

from headway.compare.bootstrap import Estimate
from headway.compare.difference import Difference, holm, independent, paired


def test_welch_s_degrees_of_freedom_lie_between_the_smaller_run_and_the_sum() -> None:
    found = independent(Estimate(1.0, 0.3, 9), Estimate(2.0, 0.4, 19))
    assert found.value == 1.0
    assert found.standard_error == pytest.approx(0.5)
    assert found.freedom == pytest.approx(0.25**2 / (0.09**2 / 9 + 0.16**2 / 19))


def test_pairs_are_tested_by_student_s_rule() -> None:
    """Student's own sleep data (Biometrika 6, 1908): t 4.0621 with 9 degrees of freedom."""
    gains = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
    found = paired(gains)
    assert found.value / found.standard_error == pytest.approx(4.0621, abs=1e-4)
    assert found.chance() == pytest.approx(0.002833, abs=1e-6)
    low, high = found.interval(0.95)
    assert (low, high) == pytest.approx((0.7001, 2.4599), abs=1e-4)


def test_a_difference_without_any_noise_is_certain() -> None:
    assert Difference(0.1, 0.0, 10).chance() == 0.0
    assert Difference(0.0, 0.0, 10).chance() == 1.0


def test_confidence_beyond_a_limit_falls_as_the_limit_rises() -> None:
    found = Difference(0.1, 0.02, 20)
    assert found.exceeds(0.05) > 0.98
    assert found.exceeds(0.1) == pytest.approx(0.5)
    assert found.exceeds(0.2) < 0.001
    assert math.isclose(1 - found.exceeds(0.0), found.chance() / 2)


def test_holm_counts_from_the_smallest_until_one_does_not_count() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005], 0.05) == [True, False, False, True]
    assert holm([0.2], 0.05) == [False]
    assert holm([], 0.05) == []
