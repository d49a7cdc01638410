"""How often a search is wrong, on simulated targets whose truth is known (L2)."""

from __future__ import annotations

import math
import random

import pytest

from headway.load.search import Answer, Bounds, RateSearch
from headway.load.search import Observation as Seen

LIMIT_PER_S = 40.0
SEARCHES = 400


def search(spread: float, rng: random.Random) -> tuple[Answer, int]:
    """A target that meets its objectives half of the time at the limit.

    Args:
        spread: From 88% to 12% within this share of the limit on either side.
    """
    going = RateSearch(Bounds(1, 400))
    stages = 0
    while (rate := going.next_rate_per_s()) is not None:
        stages += 1
        seen = "met" if rng.random() < meets(rate, spread) else "missed"
        going.observe([Seen(rate, seen)])
    return going.answer(), stages


def meets(rate: float, spread: float) -> float:
    exponent = 2 * math.log(rate / LIMIT_PER_S) / math.log1p(spread)
    return 1 / (1 + math.exp(min(500.0, exponent)))


@pytest.mark.parametrize("spread", [0.02, 0.1, 0.3])
def test_a_settled_answer_seldom_misses_more_often_than_it_meets(spread: float) -> None:
    rng = random.Random(20261201)
    answers = [search(spread, rng) for _ in range(SEARCHES)]
    settled = [answer for answer, _ in answers if answer.settled]
    assert len(settled) > 0.8 * SEARCHES
    wrong = sum(
        1 for answer in settled if answer.rate_per_s and meets(answer.rate_per_s, spread) < 0.5
    )
    stages = sum(number for _, number in answers) / SEARCHES
    rates = sorted(answer.rate_per_s or 0.0 for answer in settled)
    print(
        f"spread {spread}: {wrong} of {len(settled)} above the limit, {stages:.1f} stages a search,"
        f" rates {rates[len(rates) // 20]} to {rates[-len(rates) // 20]}"
    )
    assert wrong <= 0.05 * len(settled)
    assert rates[len(rates) // 20] > LIMIT_PER_S * (1 - 2 * spread - 0.06)
