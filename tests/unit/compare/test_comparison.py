from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headway.compare import CompareOptions, Comparison, Refusal, Rules, compare_runs
from headway.compare.model import MetricComparison, comparison_json
from headway.core.errors import ConfigError

MakeRun = Callable[..., Path]


def compared(a: Path, b: Path, **options: Any) -> Comparison:
    outcome = compare_runs(a, b, CompareOptions(**options))
    assert isinstance(outcome, Comparison), outcome
    return outcome


def metric(comparison: Comparison, name: str, stage: int = 0) -> MetricComparison:
    return next(m for m in comparison.stages[stage].metrics if m.name == name)


def refused(a: Path, b: Path) -> list[str]:
    outcome = compare_runs(a, b)
    assert isinstance(outcome, Refusal)
    return [one.what for one in outcome.unlike]


def test_slower_decoding_is_told_by_how_much_and_nothing_else_is_called(make_run: MakeRun) -> None:
    """N7: a known change of 5% in TPOT, which is 4% in latency here."""
    found = compared(make_run("a", draw=1), make_run("b", draw=2, slower=1.05))
    tpot = metric(found, "tpot_p50_s")
    assert tpot.word == "worse"
    assert tpot.change == pytest.approx(0.05, abs=0.01)
    assert tpot.low is not None
    assert tpot.high is not None
    assert tpot.low < 0.05 < tpot.high
    assert tpot.effect_size == pytest.approx(0.5, abs=0.1)
    assert metric(found, "ttft_p50_s").word == "cannot tell"
    assert found.word == "worse"


def test_the_other_way_round_it_is_better(make_run: MakeRun) -> None:
    found = compared(make_run("a", draw=1, slower=1.05), make_run("b", draw=2))
    assert metric(found, "tpot_p50_s").word == "better"
    assert found.word == "better"


def test_of_equal_runs_nothing_can_be_told(make_run: MakeRun) -> None:
    found = compared(make_run("a", draw=1), make_run("b", draw=2))
    assert found.word == "cannot tell"
    assert {m.word for m in found.stages[0].metrics} == {"cannot tell"}
    assert metric(found, "error_share").reason == "no difference at all"


def test_the_same_runs_give_the_same_bytes(make_run: MakeRun) -> None:
    a, b = make_run("a", draw=1), make_run("b", draw=2)
    options = CompareOptions(metrics=["ttft"])
    once, again = (comparison_json(compare_runs(a, b, options)) for _ in range(2))
    assert once == again
    assert msgspec.json.decode(once, type=Comparison).comparisons == 3


def test_more_failures_are_worse_and_durations_carry_a_caution(make_run: MakeRun) -> None:
    found = compared(make_run("a", draw=1), make_run("b", draw=2, error_share=0.1))
    assert metric(found, "error_share").word == "worse"
    assert metric(found, "good_share").word == "worse"
    assert any("durations are those of the others" in c for c in found.stages[0].cautions)


def test_a_change_below_the_least_that_counts_gets_no_word(make_run: MakeRun) -> None:
    rules = Rules(minimum_change=0.2)
    runs = make_run("a", draw=1), make_run("b", draw=2, slower=1.05)
    tpot = metric(compared(*runs, rules=rules, metrics=["tpot_p50_s"]), "tpot_p50_s")
    assert tpot.word == "cannot tell"
    assert tpot.reason == "no difference beyond ±20.0%"


def test_a_run_too_short_for_its_p99_says_what_it_needs(make_run: MakeRun) -> None:
    runs = make_run("a", draw=1, seconds=10), make_run("b", draw=2, seconds=10)
    found = compared(*runs, metrics=["ttft"])
    assert metric(found, "ttft_p99_s").reason == "A: 200 requests; this percentile needs 368"
    assert metric(found, "ttft_p50_s").low is not None


def test_what_was_not_measured_is_null_and_never_zero(make_run: MakeRun) -> None:
    """Trap 45."""
    nothing = {"first_token_ns": None, "last_token_ns": None}
    found = compared(make_run("a"), make_run("b", draw=2, **nothing), metrics=["ttft", "tpot"])
    ttft = metric(found, "ttft_p50_s")
    assert (ttft.b, ttft.change, ttft.word) == (None, None, "cannot tell")
    assert ttft.reason == "not measured in B"


def test_token_counts_of_different_sources_are_not_compared(make_run: MakeRun) -> None:
    other = make_run("b", draw=2, output_tokens_source="chunks")
    tpot = metric(compared(make_run("a"), other, metrics=["tpot"]), "tpot_p50_s")
    assert tpot.reason == "A counts output tokens by usage, B by chunks"


def test_goodput_under_other_objectives_is_not_compared(make_run: MakeRun) -> None:
    other = make_run("b", draw=2, spec={"objectives": {"ttft_s": 0.2}})
    good = metric(compared(make_run("a"), other, metrics=["good_share"]), "good_share")
    assert good.reason == "the objectives differ"


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("workload", {"provenance": {"workload_hash": "w2"}}),
        ("workload", {"provenance": {"workload_hash": None}}),
        ("workload", {"spec": {"backend": {"kind": "openai-chat", "stream": False}}}),
        ("seed", {"seed": 7}),
        ("cache", {"spec": {"inputs": {"kind": "synthetic", "unique_prefix": False}}}),
        ("cache", {"cached_tokens": 32}),
        ("load", {"spec": {"warmup_s": 5.0}}),
        ("load", {"stages": ("constant 30/s",)}),
        ("client", {"provenance": {"workers": 2}}),
        ("client", {"provenance": {"versions": {"headway": "0.2.0"}}}),
        ("client", {"provenance": {"host": {"name": "other"}}}),
    ],
)
def test_runs_that_differ_in_more_than_the_target_are_refused(
    make_run: MakeRun, what: str, change: dict[str, Any]
) -> None:
    base = {"cached_tokens": 0} if "cached_tokens" in change else {}
    a = make_run("a", seconds=5, **base)
    assert what in refused(a, make_run("b", seconds=5, draw=2, **change))


def test_what_differs_is_said_in_words_and_always_in_the_same_order(make_run: MakeRun) -> None:
    profile = {"kind": "gamma", "rate": [10.0, 20.5], "cv": 2.0, "cap": None}
    changed = make_run("b", seconds=5, draw=2, spec={"profile": profile, "warmup_s": 5.0})
    outcome = compare_runs(make_run("a", seconds=5), changed)
    assert isinstance(outcome, Refusal)
    loads = [unlike.text for unlike in outcome.unlike if unlike.what == "load"]
    assert "and kind gamma, rate 10, 20.5, cv 2 in B" in loads[0]
    assert loads[1].endswith("warmup_s is 0 in A and 5 in B")


def test_another_target_alone_is_no_reason_to_refuse(make_run: MakeRun) -> None:
    target = {"url": "http://other:9", "model": "sim-70b", "transport": "fast"}
    other = make_run("b", draw=2, spec={"target": target})
    assert isinstance(compare_runs(make_run("a"), other), Comparison)


def test_what_was_allowed_to_differ_is_said(make_run: MakeRun) -> None:
    runs = make_run("a", seconds=5), make_run("b", seconds=5, seed=7)
    found = compared(*runs, allow_different=True, metrics=["ttft_p50_s"])
    assert [one.what for one in found.unlike] == ["seed"]


def test_stages_are_matched_by_name_and_those_left_over_are_named(make_run: MakeRun) -> None:
    a = make_run("a", stages=("first", "second"), seconds=20)
    b = make_run("b", stages=("second", "third"), seconds=20, draw=2)
    found = compared(a, b, metrics=["ttft_p50_s"])
    assert [stage.name for stage in found.stages] == ["second"]
    assert found.cautions == [
        "A's stage first has no counterpart in B",
        "B's stage third has no counterpart in A",
    ]


def test_stages_and_metrics_that_are_not_there_are_named(make_run: MakeRun) -> None:
    a, b = make_run("a", seconds=5), make_run("b", seconds=5, draw=2)
    with pytest.raises(ConfigError, match="both have constant 20/s"):
        compared(a, b, stages=["other"])
    with pytest.raises(ConfigError, match="no metric is called itl"):
        compared(a, b, metrics=["itl"])
