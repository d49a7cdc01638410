from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway.compare import CompareOptions, Comparison, Refusal
from headway.compare.rounds import compare_rounds
from headway.core.errors import ConfigError

MakeRun = Callable[..., Path]


@pytest.fixture
def rounds(make_run: MakeRun) -> Callable[..., list[tuple[Path, Path]]]:
    """Pairs of short runs; `b` changes the second of each pair."""

    def make(count: int = 4, **b: Any) -> list[tuple[Path, Path]]:
        return [
            (
                make_run(f"{n}-a", draw=n, seconds=8, seed=n),
                make_run(f"{n}-b", draw=100 + n, seconds=8, **{"seed": n, **b}),
            )
            for n in range(count)
        ]

    return make


def test_a_difference_of_five_percent_is_told_from_four_short_pairs(rounds: Any) -> None:
    found = compare_rounds(rounds(slower=1.05), CompareOptions(metrics=["tpot", "ttft"]))
    assert isinstance(found, Comparison)
    tpot = found.stages[0].metrics[3]
    assert (tpot.name, tpot.word, tpot.pairs, tpot.freedom) == ("tpot_p50_s", "worse", 4, 3)
    assert tpot.change == pytest.approx(0.05, abs=0.01)
    assert tpot.effect_kind == "cohens_dz"
    assert tpot.a is not None
    assert tpot.b == pytest.approx(tpot.a * (1 + tpot.change))
    assert {m.word for m in found.stages[0].metrics[:3]} == {"cannot tell"}
    assert found.stages[0].cautions == []


def test_of_equal_targets_nothing_can_be_told(rounds: Any) -> None:
    found = compare_rounds(rounds())
    assert isinstance(found, Comparison)
    assert (found.word, found.method) == ("cannot tell", "paired rounds")


def test_what_a_round_did_not_measure_is_not_made_up(rounds: Any, make_run: MakeRun) -> None:
    """Trap 45."""
    silent = make_run("x-a", seconds=8), make_run("x-b", seconds=8, first_token_ns=None)
    found = compare_rounds([*rounds(3), silent], CompareOptions(metrics=["ttft_p50_s"]))
    assert isinstance(found, Comparison)
    (ttft,) = found.stages[0].metrics
    assert ttft.reason == "measured in 3 of 4 pairs of runs only"
    assert (ttft.a, ttft.change) == (None, None)


def test_seeds_must_be_alike_within_a_pair_only(rounds: Any) -> None:
    refusal = compare_rounds(rounds(seed=99))
    assert isinstance(refusal, Refusal)
    assert {one.what for one in refusal.unlike} == {"seed"}


def test_two_pairs_are_too_few(rounds: Any) -> None:
    with pytest.raises(ConfigError, match="2 pairs of runs tell nothing"):
        compare_rounds(rounds(2))
