"""N1: each word is provoked, and a near miss stays VALID."""

from __future__ import annotations

import math
from typing import Any

import pytest

from headway.report.floor import Floor
from headway.report.model import Trend, VerdictWord
from headway.report.verdict import CAUSES, Facts, judge, overall

GOOD: dict[str, Any] = {
    "loop": "open",
    "completed": 1000,
    "errored": 0,
    "missing": 0,
    "cpu_share_max": 0.3,
    "loop_lag_p50_s": 0.002,
    "floor": Floor(requests=500, duration_s=1, ttft_p50_s=0.0005, max_requests_per_s=2000.0),
    "ttft_p50_s": 0.05,
    "latency_p50_s": 0.5,
    "completed_per_s": 100.0,
    "lateness_p99_s": 0.001,
    "cached_share": 0.0,
    "unique_prompts": True,
}


def _trend(
    measure: Any = "response_s", change: float = 0.5, z: float = 3.5, first: float = 1.0
) -> Trend:
    last = first * (1 + change)
    return Trend(measure=measure, blocks=[], first=first, last=last, change_share=change, z=z)


SPOILT: list[tuple[VerdictWord, dict[str, Any]]] = [
    ("WORKER_LOST", {"workers_lost": 1}),
    ("WORKER_LOST", {"missing": 1}),
    ("ERRORS", {"completed": 989, "errored": 11}),
    ("CLIENT_BOUND", {"cpu_share_max": 0.81}),
    ("CLIENT_BOUND", {"loop_lag_p50_s": 0.0101}),
    ("CLIENT_BOUND", {"floor": Floor(requests=1, duration_s=1, ttft_p50_s=0.0051)}),
    ("CLIENT_BOUND", {"completed_per_s": 1601.0}),
    ("SCHEDULE_MISSED", {"lateness_p99_s": 0.0101}),
    ("SCHEDULE_MISSED", {"lateness_p99_s": math.inf}),
    ("NOT_STEADY", {"trends": [_trend()]}),
    ("NOT_STEADY", {"trends": [_trend(change=-0.5, z=-3.5)]}),
    ("NOT_STEADY", {"trends": [_trend("in_flight", first=10)]}),
    ("CACHE_WARM", {"cached_share": 0.11}),
    ("TOO_FEW_SAMPLES", {"completed": 99}),
]

NEAR_MISSES: list[tuple[str, dict[str, Any]]] = [
    ("no worker lost", {"workers_lost": 0, "missing": 0}),
    ("one in a hundred failed", {"completed": 990, "errored": 10}),
    ("a busy core", {"cpu_share_max": 0.8}),
    ("the lag of an ordinary host", {"loop_lag_p50_s": 0.01}),
    (
        "a tenth of the median is the client's",
        {"floor": Floor(requests=1, duration_s=1, ttft_p50_s=0.005)},
    ),
    ("four fifths of the client's rate", {"completed_per_s": 1600.0}),
    ("the noise of a timer", {"lateness_p99_s": 0.01}),
    ("late by a tenth of a long TTFT", {"lateness_p99_s": 0.1, "ttft_p50_s": 1.0}),
    ("closed loop has no schedule", {"loop": "closed", "lateness_p99_s": 5.0}),
    ("a large change by chance", {"trends": [_trend(z=2.5)]}),
    ("a clear trend that is small", {"trends": [_trend(change=0.2, z=5.0)]}),
    ("less than one request more in flight", {"trends": [_trend("in_flight", first=1.9)]}),
    ("a ramp is meant to change", {"trends": [_trend()], "trend_expected": True}),
    ("the template's tokens are cached", {"cached_share": 0.1}),
    ("a shared prefix was asked for", {"cached_share": 0.9, "unique_prompts": False}),
    ("just enough", {"completed": 100}),
]


def test_a_good_stage_is_valid_and_shows_its_evidence() -> None:
    verdict = judge(Facts(**GOOD))
    assert verdict.word == "VALID"
    assert verdict.words == []
    assert {check.word for check in verdict.checks} == set(CAUSES)
    assert all(check.text for check in verdict.checks)


@pytest.mark.parametrize(("word", "change"), SPOILT)
def test_each_word_is_said_when_it_holds(word: VerdictWord, change: dict[str, Any]) -> None:
    verdict = judge(Facts(**{**GOOD, **change}))
    assert verdict.word == word
    assert verdict.words == [word]
    (failed,) = [check for check in verdict.checks if check.failed]
    assert failed.word == word


@pytest.mark.parametrize(("case", "change"), NEAR_MISSES)
def test_a_near_miss_stays_valid(case: str, change: dict[str, Any]) -> None:
    assert judge(Facts(**{**GOOD, **change})).word == "VALID", case


def test_what_was_not_measured_is_no_evidence_against_a_stage() -> None:
    verdict = judge(Facts(completed=1000))
    assert verdict.word == "VALID"
    assert any(check.value is None and "not calibrated" in check.text for check in verdict.checks)


def test_several_words_can_hold_and_the_cause_comes_first() -> None:
    facts = Facts(**{**GOOD, "completed": 20, "errored": 80, "workers_lost": 1})
    verdict = judge(facts)
    assert verdict.word == "WORKER_LOST"
    assert verdict.words == ["WORKER_LOST", "ERRORS", "TOO_FEW_SAMPLES"]


def test_a_stage_in_which_nothing_happened_is_not_valid() -> None:
    assert judge(Facts()).word == "TOO_FEW_SAMPLES"


def test_infinite_lateness_is_published_as_a_word_that_json_can_hold() -> None:
    verdict = judge(Facts(**{**GOOD, "lateness_p99_s": math.inf}))
    (check,) = [check for check in verdict.checks if check.failed]
    assert check.value == "Infinity"


def test_the_runs_word_is_the_first_cause_of_any_stage() -> None:
    assert overall(["VALID", "TOO_FEW_SAMPLES", "ERRORS"]) == "ERRORS"
    assert overall(["VALID", "VALID"]) == "VALID"


def test_one_is_singular() -> None:
    texts = [check.text for check in judge(Facts(**{**GOOD, "workers_lost": 1})).checks]
    assert "1 load worker died during the stage" in texts
