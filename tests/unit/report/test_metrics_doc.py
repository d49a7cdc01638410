"""docs/metrics.md says what the code does."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.report import verdict
from headway.report.csv_rows import DURATIONS
from headway.report.gaps import RELATIVE_ERROR
from headway.report.quantiles import PER_MILLE, samples_needed
from headway.report.trend import BLOCKS

ROOT = Path(__file__).parents[3]
METRICS = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
DECISION = (ROOT / "docs/decisions/0009-verdict.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", DURATIONS)
def test_every_duration_is_defined(name: str) -> None:
    assert f"`{name}`" in METRICS


@pytest.mark.parametrize("text", [METRICS, DECISION], ids=["metrics", "decision"])
def test_every_word_is_explained_in_the_order_of_causes(text: str) -> None:
    places = [text.index(f"| `{word}` |") for word in verdict.CAUSES]
    assert places == sorted(places)


@pytest.mark.parametrize("text", [METRICS, DECISION], ids=["metrics", "decision"])
def test_the_limits_are_those_of_the_code(text: str) -> None:
    rows = {word: "\n".join(line for line in _rows(text, word)) for word in verdict.CAUSES}
    assert f"{verdict.MAX_ERROR_SHARE:.0%}" in rows["ERRORS"]
    assert f"{verdict.MAX_CPU_SHARE:.0%}" in rows["CLIENT_BOUND"]
    assert f"{verdict.MAX_RATE_SHARE:.0%}" in rows["CLIENT_BOUND"]
    tolerated = f"max({verdict.TOLERATED_DELAY_S * 1000:.0f} ms, {verdict.TOLERATED_SHARE:.0%} of"
    assert tolerated in rows["CLIENT_BOUND"]
    assert tolerated in rows["SCHEDULE_MISSED"]
    assert f"{verdict.MAX_CHANGE_SHARE:.0%}" in rows["NOT_STEADY"]
    assert f"±{verdict.TREND_Z}" in rows["NOT_STEADY"]
    assert BLOCKS == 10
    assert "ten blocks" in rows["NOT_STEADY"]
    assert f"{verdict.MAX_CACHED_SHARE:.0%}" in rows["CACHE_WARM"]
    assert str(verdict.MIN_COMPLETED) in rows["TOO_FEW_SAMPLES"]


def _rows(text: str, word: str) -> list[str]:
    """A word's row of the table and those below it that continue it."""
    lines = text[text.index(f"| `{word}` |") :].splitlines()
    more = [line for line in lines[1:4] if line.startswith("| |")]
    return [lines[0], *more]


def test_the_numbers_of_samples_are_those_of_the_code() -> None:
    for name, per_mille in PER_MILLE.items():
        label = "p99.9" if name == "p999" else name
        flat = " ".join(METRICS.split())
        assert f"{samples_needed(per_mille):,} for {label}" in flat or (
            f"{samples_needed(per_mille)} samples for {label}" in flat
        )


def test_the_error_of_the_buckets_is_that_of_the_code() -> None:
    assert f"{RELATIVE_ERROR:.1%}" in METRICS
