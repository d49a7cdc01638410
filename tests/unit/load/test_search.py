"""The search for the highest rate: its steps, its end, and that it ends (L2)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.load.search import Answer, Bounds, Observation, RateSearch, Seen, rate_grid, sign_test


def carry_out(search: RateSearch, target: Callable[[float], Seen]) -> tuple[Answer, list[float]]:
    tried = []
    while (rate := search.next_rate_per_s()) is not None:
        tried.append(rate)
        search.observe([Observation(rate, target(rate))])
    return search.answer(), tried


def test_a_sharp_limit_is_found_to_one_step_of_the_grid() -> None:
    search = RateSearch(Bounds(1, 100))
    answer, tried = carry_out(search, lambda rate: "met" if rate <= 37.3 else "missed")
    assert answer.rate_per_s is not None
    assert answer.next_per_s is not None
    assert answer.rate_per_s <= 37.3 < answer.next_per_s
    assert answer.next_per_s / answer.rate_per_s < 1.06
    assert answer.settled
    assert answer.confidence >= 0.95
    assert (answer.met, answer.stages) == (5, 5)
    assert (answer.next_missed, answer.next_is) == (2, "missed")
    assert len(tried) < 16


def test_one_unlucky_stage_does_not_move_the_answer() -> None:
    """The first stage at a good rate misses by chance; more stages there set it right."""
    unlucky = {"left": 1}

    def target(rate: float) -> Seen:
        if rate < 20 and unlucky["left"]:
            unlucky["left"] -= 1
            return "missed"
        return "met" if rate <= 37.3 else "missed"

    answer, _ = carry_out(RateSearch(Bounds(1, 100)), target)
    assert answer.rate_per_s is not None
    assert 35 < answer.rate_per_s <= 37.3


def test_a_target_that_misses_at_the_lowest_rate_has_no_answer() -> None:
    answer, tried = carry_out(RateSearch(Bounds(2, 100)), lambda rate: "missed")
    assert answer.rate_per_s is None
    assert answer.next_per_s == 2
    assert answer.next_missed >= 2
    assert len(tried) <= 9


def test_a_target_that_meets_at_the_highest_rate_is_not_credited_with_more() -> None:
    answer, _ = carry_out(RateSearch(Bounds(2, 50, "asked")), lambda rate: "met")
    assert answer.rate_per_s == max(rate_grid(2, 50, 0.05))
    assert answer.next_per_s is None
    assert answer.next_is == "asked"
    assert answer.settled


def test_the_answer_is_never_above_what_the_client_can_do() -> None:
    answer, _ = carry_out(RateSearch(Bounds(1, 100)), lambda r: "met" if r < 30 else "unusable")
    assert answer.rate_per_s is not None
    assert answer.rate_per_s < 30
    assert answer.next_is == "client"


def test_one_spoiled_stage_is_repeated() -> None:
    spoiled = {"left": 1}

    def target(rate: float) -> Seen:
        if spoiled["left"]:
            spoiled["left"] -= 1
            return "unusable"
        return "met" if rate <= 37.3 else "missed"

    answer, tried = carry_out(RateSearch(Bounds(1, 100)), target)
    assert tried[0] == tried[1]
    assert answer.next_is == "missed"


def test_the_search_is_the_same_whether_it_is_told_at_once_or_bit_by_bit() -> None:
    """A run that lost its process goes on where it was (N6)."""
    target = lambda rate: "met" if rate <= 37.3 else "missed"  # noqa: E731
    bit_by_bit = RateSearch(Bounds(1, 100))
    _, tried = carry_out(bit_by_bit, target)
    for told in range(len(tried)):
        again = RateSearch(Bounds(1, 100))
        again.observe(Observation(rate, target(rate)) for rate in tried[:told])
        assert again.next_rate_per_s() == tried[told]


@given(
    st.floats(0.1, 100),
    st.floats(1, 1000),
    st.sampled_from([0.02, 0.05, 0.2]),
    st.lists(st.sampled_from(["met", "missed", "unusable"]), min_size=60, max_size=60),
)
def test_it_ends_whatever_the_target_does(
    low: float, factor: float, precision: float, seen: list[Seen]
) -> None:
    search = RateSearch(Bounds(low, low * factor), precision)
    story = iter(seen)
    answer, tried = carry_out(search, lambda rate: next(story))
    assert len(tried) <= search.most_stages
    if answer.rate_per_s is not None and answer.next_per_s is not None:
        assert answer.rate_per_s < answer.next_per_s


@pytest.mark.parametrize(
    ("hits", "trials", "chance"), [(0, 0, 1.0), (5, 5, 1 / 32), (4, 5, 6 / 32), (8, 9, 10 / 512)]
)
def test_the_sign_test_counts_coins(hits: int, trials: int, chance: float) -> None:
    assert sign_test(hits, trials) == pytest.approx(chance)
