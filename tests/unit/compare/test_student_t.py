from __future__ import annotations

import pytest

from headway.compare.student_t import student_t_cdf, student_t_quantile


@pytest.mark.parametrize(
    ("freedom", "share", "known"),
    [
        (1, 0.975, 12.7062),
        (2, 0.95, 2.9200),
        (3, 0.975, 3.1824),
        (5, 0.995, 4.0321),
        (10, 0.95, 1.8125),
        (30, 0.975, 2.0423),
        (1000, 0.975, 1.9623),
    ],
)
def test_quantiles_are_those_of_printed_tables(freedom: int, share: float, known: float) -> None:
    assert student_t_quantile(share, freedom) == pytest.approx(known, abs=5e-5)
    assert student_t_quantile(1 - share, freedom) == pytest.approx(-known, abs=5e-5)


@pytest.mark.parametrize("freedom", [1.5, 7.3, 78.0])
def test_the_quantile_undoes_the_distribution(freedom: float) -> None:
    for share in (0.001, 0.3, 0.5, 0.9, 0.99999):
        assert student_t_cdf(student_t_quantile(share, freedom), freedom) == pytest.approx(share)


def test_with_one_degree_of_freedom_it_is_cauchy_s() -> None:
    assert student_t_cdf(1.0, 1) == pytest.approx(0.75)
    assert student_t_cdf(-1.0, 1) == pytest.approx(0.25)
