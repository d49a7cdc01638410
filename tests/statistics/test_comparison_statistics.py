"""N7: how often a comparison names a difference, by the very code that users run.

The long version of these, with more runs and more cases, is `benchmarks/compare/false_alarms.py`;
what it measured stands in docs/compare.md.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest

from headway.compare.bootstrap import BlockedQuantile, estimate
from headway.compare.difference import paired

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "compare" / "false_alarms.py"
RUNS = 30
"""Held against each other in 435 pairs, which say as much as about eighty independent ones."""

HIGHEST = 0.11
"""With a true rate of 5%, seen more often in fewer than 1 of 100 draws of so many runs."""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("false_alarms", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("memory_s", "share"), [(0.0, 0.5), (0.3, 0.5), (0.3, 0.99)], ids=["iid", "p50", "p99"]
)
def test_equal_runs_seem_to_differ_as_often_as_promised(
    script: ModuleType, memory_s: float, share: float
) -> None:
    rng = random.Random(11)
    seen = script.rates(script.estimates(RUNS, share, 60, memory_s, rng))
    assert seen.too_short < 0.2
    assert seen.clear <= HIGHEST


def test_resampling_single_requests_would_call_chance_a_difference(script: ModuleType) -> None:
    """What the blocks are for: the same runs with one request a block."""
    rng = random.Random(12)
    estimates = []
    for _ in range(8):
        values = script.durations(rng, 20, 1.0).values_s
        single = BlockedQuantile([[value] for value in values], 0.5)
        estimates.append(estimate(single, lambda value: value, rng))
    assert script.rates(estimates).clear > 0.25


def test_bursts_of_errors_are_not_taken_for_more_errors(script: ModuleType) -> None:
    rng = random.Random(13)
    made = [script.estimated(script.errors(rng, 120, 0.05), 0, rng) for _ in range(RUNS)]
    assert script.rates(made).clear <= HIGHEST


def test_a_true_change_of_ten_percent_is_seen(script: ModuleType) -> None:
    rng = random.Random(14)
    base = script.estimates(12, 0.5, 60, 0.2, rng)
    slower = script.estimates(12, 0.5, 60, 0.2, rng, 1.1)
    assert script.rates(base, slower).clear > 0.8


def test_a_memory_as_long_as_the_run_is_admitted(script: ModuleType) -> None:
    """Not always: what is longer than the run cannot be seen in it (NOT_STEADY may see it)."""
    assert script.rates(script.estimates(10, 0.5, 20, 5.0, random.Random(15))).too_short >= 0.6


def test_pairs_of_rounds_without_a_difference_are_called_as_often_as_promised() -> None:
    """Also when rounds drift: a pair shares its drift, which therefore cancels."""
    rng = random.Random(16)
    clear = 0
    for _ in range(2_000):
        drift = rng.gauss(0, 0.01)
        rounds = [
            (i * drift + rng.gauss(0, 0.02)) - (i * drift + rng.gauss(0, 0.02)) for i in range(6)
        ]
        clear += paired(rounds).chance() < 0.05
    assert clear / 2_000 == pytest.approx(0.05, abs=0.015)
