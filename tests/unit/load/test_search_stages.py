"""From the results of stages to the next stage of a search, and to its answer (L2)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from headway.load.results import StageResult
from headway.load.search_stages import SearchStages, judge
from headway.load.spec import LimitSpec, RunSpec, SearchProfile
from headway.load.stages import StageLimits, StagePlan
from headway.report.conditions import parse_conditions
from headway.report.model import Check, DurationSummary, StageReport, Verdict

SLO = "ttft p99 < 500ms"


def duration(p99_s: float) -> DurationSummary:
    value = 0.001
    return DurationSummary(
        count=1000, mean_s=value, sd_s=0.0, min_s=value, p50_s=value, p75_s=value, p90_s=value,
        p95_s=value, p99_s=p99_s, p999_s=p99_s, max_s=p99_s, trusted=["p99"],
    )  # fmt: skip


def numbers(p99_s: float = 0.1, failed: tuple[Check, ...] = ()) -> StageReport:
    """As much of a stage's report as a judgement reads."""
    nothing: Any = msgspec.UNSET
    fields: dict[str, Any] = dict.fromkeys(StageReport.__struct_fields__, nothing)
    fields["ttft"] = duration(p99_s)
    fields["with_failures"] = type("Missing", (), {"ttft": None})
    words = [check.word for check in failed]
    fields["verdict"] = Verdict(
        word=words[0] if words else "VALID", words=words, checks=list(failed)
    )
    return StageReport(**fields)


def check(word: Any, value: float = 1.0) -> Check:
    return Check(word=word, measure="m", value=value, limit=0.2, failed=True, text="said so")


def result(plan: StagePlan, stage: int, achieved_per_s: float = 0.0) -> StageResult:
    return StageResult(
        stage=stage, name=plan.name, profile=plan.profile, reason="max_seconds", offered=1,
        completed=1, errored=0, cancelled=0, elapsed_s=1.0, achieved_per_s=achieved_per_s,
    )  # fmt: skip


class Target:
    """Achieves 4/s one by one, 40/s saturated, and meets the objective up to a rate."""

    def __init__(
        self,
        limit_per_s: float = 20.0,
        client_limit_per_s: float | None = None,
        **profile: Any,
    ) -> None:
        self.limit_per_s = limit_per_s
        spec = RunSpec.model_validate(
            {
                "target": {"url": "http://localhost:1"},
                "profile": {"kind": "search", "slo": SLO, **profile},
                "limits": {"max_seconds": 30},
            }
        )
        assert isinstance(spec.profile, SearchProfile)
        self.results: list[StageResult] = []
        self.plans: list[StagePlan] = []
        self.spec = spec
        self.search = SearchStages(
            spec.profile, StageLimits(spec, None), self.read, client_limit_per_s
        )

    def read(self, stage: int) -> StageReport:
        rate = float(self.results[stage].profile["rate"])
        return numbers(p99_s=0.2 if rate <= self.limit_per_s else 0.9)

    def run(self) -> None:
        while (plan := self.search.next_stage(self.results)) is not None:
            achieved = {"synchronous": 4.0, "throughput": 40.0}.get(plan.profile["kind"], 0.0)
            self.plans.append(plan)
            self.results.append(result(plan, len(self.results), achieved))


def test_a_search_measures_both_ends_then_finds_the_limit_between_them() -> None:
    target = Target()
    target.run()
    assert [plan.name for plan in target.plans[:2]] == ["synchronous", "saturation"]
    note = target.search.note(target.results)
    assert note.data is not None
    answer = note.data["answer"]
    assert 18.5 < answer["rate_per_s"] <= 20.0 < answer["next_per_s"]
    assert answer["settled"]
    assert "is the highest rate found that meets ttft p99 < 500ms: 5 of 5 stages" in note.text
    assert "900.00 ms" in note.text
    rates = [plan.asked_rate_per_s for plan in target.plans[2:]]
    assert all(rate is not None and 0.4 <= rate <= 60 for rate in rates)


def test_given_both_ends_no_stage_is_spent_on_finding_them() -> None:
    target = Target(low_rate=10, high_rate=30)
    target.run()
    assert target.plans[0].asked_rate_per_s is not None


def test_no_rate_is_tried_that_the_client_cannot_send() -> None:
    target = Target(limit_per_s=1e9, client_limit_per_s=30.0)
    target.run()
    rates = [plan.asked_rate_per_s or 0.0 for plan in target.plans[2:]]
    assert max(rates) <= 24.0  # Four fifths of what it can do; see the verdict CLIENT_BOUND.
    assert "more than this client can send" in target.search.note(target.results).text


def test_stages_stop_at_saturation_and_last_longer_where_requests_are_few() -> None:
    target = Target(low_rate=1, high_rate=30)
    target.run()
    slow = target.plans[0]
    assert all(plan.saturation is not None for plan in target.plans)
    assert slow.asked_rate_per_s is not None
    for plan in target.plans:
        assert plan.max_seconds is not None
        assert plan.max_seconds * (plan.asked_rate_per_s or 0) >= 119 or plan.max_seconds == 120


def test_a_target_that_completes_nothing_ends_the_search() -> None:
    target = Target()
    plan = target.search.next_stage([])
    assert plan is not None
    dead = [result(plan, 0)]
    plan = target.search.next_stage(dead)
    assert plan is not None
    dead.append(result(plan, 1))
    assert target.search.next_stage(dead) is None
    assert "no answer" in target.search.note(dead).text


@pytest.mark.parametrize(
    ("stage", "reason", "seen"),
    [
        (numbers(), "max_seconds", "met"),
        (numbers(p99_s=0.5), "max_seconds", "missed"),
        (numbers(), "saturated", "missed"),
        (numbers(failed=(check("NOT_STEADY", 0.5),)), "max_seconds", "missed"),
        (numbers(failed=(check("NOT_STEADY", -0.5),)), "max_seconds", "met"),
        (numbers(failed=(check("ERRORS"),)), "max_seconds", "missed"),
        (numbers(failed=(check("TOO_FEW_SAMPLES"),)), "max_seconds", "met"),
        (numbers(p99_s=0.9, failed=(check("CLIENT_BOUND"),)), "max_seconds", "unusable"),
        (numbers(failed=(check("SCHEDULE_MISSED"),)), "max_seconds", "unusable"),
        (numbers(failed=(check("WORKER_LOST"),)), "worker_lost", "unusable"),
    ],
)
def test_a_stage_is_judged_by_its_objectives_unless_the_client_spoiled_it(
    stage: StageReport, reason: str, seen: str
) -> None:
    assert judge(stage, reason, "why", parse_conditions(SLO)).seen == seen


def test_an_objective_on_errors_judges_errors() -> None:
    asked = parse_conditions(f"{SLO}, error rate < 5%")
    stage = numbers(failed=(check("ERRORS"),))
    stage = msgspec.structs.replace(stage, counts=_Counts())  # type: ignore[arg-type]
    assert judge(stage, "max_seconds", None, asked).seen == "met"


class _Counts:
    completed, errored = 97, 3


def test_a_request_is_good_when_it_meets_what_the_search_asks_of_stages() -> None:
    spec = RunSpec.model_validate(
        {
            "target": {"url": "http://localhost:1"},
            "profile": {
                "kind": "search",
                "slo": "ttft p50 < 200ms, ttft p99 < 500ms; tpot p95 <= 50ms; error rate < 1%",
            },
        }
    )
    assert spec.judged_by.model_dump(exclude_none=True) == {"ttft_s": 0.5, "tpot_s": 0.05}
    assert spec.limits == LimitSpec()


def test_the_stages_of_a_search_have_the_arrivals_that_were_asked_for() -> None:
    for kind in ("constant", "poisson"):
        target = Target(low_rate=10, high_rate=30, arrivals=kind)
        target.run()
        assert {plan.profile["kind"] for plan in target.plans} == {kind}


def test_a_client_that_can_send_more_than_the_target_takes_is_no_limit() -> None:
    target = Target(limit_per_s=1e9, client_limit_per_s=5_000.0)
    target.run()
    rates = [plan.asked_rate_per_s or 0.0 for plan in target.plans[2:]]
    assert 40.0 < max(rates) <= 60.0
    assert "the saturated target completed less" in target.search.note(target.results).text


def test_a_search_by_number_of_requests_leaves_each_stage_as_long_as_that_takes() -> None:
    spec = RunSpec.model_validate(
        {
            "target": {"url": "http://localhost:1"},
            "profile": {"kind": "search", "slo": SLO, "low_rate": 10, "high_rate": 30},
            "limits": {"max_requests": 200},
        }
    )
    assert isinstance(spec.profile, SearchProfile)
    search = SearchStages(spec.profile, StageLimits(spec, None), lambda stage: numbers(), None)
    plan = search.next_stage([])
    assert plan is not None
    assert (plan.max_arrivals, plan.max_seconds) == (200, None)


def test_a_target_too_slow_at_any_rate_has_no_answer_and_is_told_what_it_missed() -> None:
    target = Target(limit_per_s=0.0, low_rate=10, high_rate=30)
    target.run()
    text = target.search.note(target.results).text
    assert text.startswith(f"No rate was found that meets {SLO}; at 10/s ")
    assert "900.00 ms" in text


def test_where_the_client_spoils_a_stage_it_is_named_and_not_the_target() -> None:
    class Spoiled(Target):
        def read(self, stage: int) -> StageReport:
            if float(self.results[stage].profile["rate"]) <= 20.0:
                return numbers()
            return numbers(failed=(check("CLIENT_BOUND"),))

    target = Spoiled(low_rate=10, high_rate=30)
    target.run()
    text = target.search.note(target.results).text
    assert "the client itself was the limit (CLIENT_BOUND: said so)" in text
    assert "missed it" not in text
