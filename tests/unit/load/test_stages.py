"""From a profile to stages, their limits, and a sweep that is decided as it goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.core.errors import ConfigError, InternalError
from headway.load.arrivals import ConstantArrivals, GammaArrivals, PoissonArrivals, TraceArrivals
from headway.load.results import StageResult
from headway.load.sizing import worker_count
from headway.load.spec import RunSpec
from headway.load.stages import DEFAULT_STAGE_S, count_stages, plan_stages


def spec(profile, **fields):
    return RunSpec.model_validate({"target": {"url": "http://x"}, "profile": profile} | fields)


def plans(asked, conversations=None, trace_ns=None):
    return [planner([]) for planner in plan_stages(asked, conversations, trace_ns)]


def result(stage, achieved_per_s):
    return StageResult(
        stage=stage,
        name="",
        profile={},
        reason="max_seconds",
        offered=1,
        completed=1,
        errored=0,
        cancelled=0,
        elapsed_s=1,
        achieved_per_s=achieved_per_s,
    )


def test_several_values_make_several_stages():
    asked = spec({"kind": "concurrent", "streams": [1, 8, 32]})
    assert [plan.streams for plan in plans(asked)] == [1, 8, 32]
    assert count_stages(asked) == 3
    rates = plans(spec({"kind": "poisson", "rate": [5, 50], "cap": 7}))
    assert [plan.arrivals for plan in rates] == [PoissonArrivals(5), PoissonArrivals(50)]
    assert {plan.streams for plan in rates} == {7}
    assert rates[1].profile == {"kind": "poisson", "rate": 50.0, "cap": 7}


@pytest.mark.parametrize(
    ("profile", "arrivals"),
    [
        ({"kind": "constant", "rate": [3]}, ConstantArrivals(3)),
        ({"kind": "gamma", "rate": [3], "cv": 2}, GammaArrivals(3, 2)),
        ({"kind": "synchronous"}, None),
        ({"kind": "throughput", "cap": 9}, None),
    ],
)
def test_each_kind_has_its_arrival_process(profile, arrivals):
    (plan,) = plans(spec(profile))
    assert plan.arrivals == arrivals


def test_stages_have_limits_of_their_own_before_the_runs():
    asked = spec(
        {
            "kind": "stages",
            "stages": [
                {"name": "soak", "profile": {"kind": "synchronous"}, "max_seconds": 3},
                {"profile": {"kind": "constant", "rate": [1, 2]}},
            ],
        },
        limits={"max_seconds": 9, "max_requests": 5},
    )
    named, first, second = plans(asked)
    assert (named.name, named.max_seconds, named.max_arrivals) == ("soak", 3, 5)
    assert (first.max_seconds, second.max_seconds) == (9, 9)
    assert count_stages(asked) == 3


def test_every_stage_ends():
    """An endless input without any limit would otherwise run until somebody notices."""
    (plan,) = plans(spec({"kind": "constant", "rate": [1]}))
    assert plan.max_seconds == DEFAULT_STAGE_S


def test_what_ends_by_itself_gets_no_default_length():
    (ramp,) = plans(spec({"kind": "ramp", "rate_from": 1, "rate_to": 5, "duration_s": 60}))
    assert ramp.max_seconds is None
    (finite,) = plans(spec({"kind": "synchronous"}), conversations=10)
    assert finite.max_seconds is None
    assert (finite.max_arrivals, finite.natural_end) == (10, "requests_exhausted")


def test_the_smaller_of_asked_and_available_requests_ends_the_stage():
    asked = spec({"kind": "synchronous"}, limits={"max_requests": 4})
    (plan,) = plans(asked, conversations=10)
    assert (plan.max_arrivals, plan.natural_end) == (4, "max_requests")


def test_a_trace_profile_replays_the_recorded_offsets():
    asked = spec(
        {"kind": "trace", "time_scale": 2}, inputs={"kind": "trace", "path": Path("t.jsonl")}
    )
    (plan,) = plans(asked, conversations=2, trace_ns=[0, 5])
    assert plan.arrivals == TraceArrivals([0, 5], 2)
    with pytest.raises(ConfigError):
        plans(asked)


def test_a_sweep_lies_between_what_one_stream_and_saturation_achieved():
    asked = spec({"kind": "sweep", "steps": 3, "arrivals": "constant", "saturation_streams": 16})
    planners = list(plan_stages(asked, None, None))
    assert len(planners) == count_stages(asked) == 5
    assert planners[0]([]).streams == 1
    assert planners[1]([]).streams == 16
    results = [result(0, 10.0), result(1, 50.0)]
    rates = [planner(results).asked_rate_per_s for planner in planners[2:]]
    assert rates == [20.0, 30.0, 40.0]


def test_a_sweep_of_a_target_that_never_answers_ends_after_the_first_two_stages():
    planners = list(plan_stages(spec({"kind": "sweep"}), None, None))
    assert planners[2]([result(0, 0.0), result(1, 0.0)]) is None


@pytest.mark.parametrize(
    ("profile", "workers", "cpus", "expected"),
    [
        ({"kind": "constant", "rate": [100]}, None, 16, 1),
        ({"kind": "constant", "rate": [7_000]}, None, 16, 4),
        ({"kind": "constant", "rate": [70_000]}, None, 4, 3),
        ({"kind": "constant", "rate": [70_000]}, None, 1, 1),
        ({"kind": "concurrent", "streams": [1, 2_000]}, None, 16, 4),
        ({"kind": "constant", "rate": [1]}, 8, 1, 8),
    ],
)
def test_one_worker_unless_the_load_needs_more_and_cores_are_free(profile, workers, cpus, expected):
    """L1, traps 18 and 34: works with one CPU."""
    assert worker_count(spec(profile, workers=workers), cpus) == expected


def test_a_search_is_not_planned_as_a_list():
    with pytest.raises(InternalError, match="planned by SearchStages"):
        plans(spec({"kind": "search", "slo": "ttft p99 < 1s"}))


def test_an_arrival_process_of_ones_own_must_be_one():
    """L9."""
    asked = spec({"kind": "plugin", "name": "builtins:dict", "options": {}})
    with pytest.raises(ConfigError, match="no method offsets_ns"):
        plans(asked)


def test_a_sweep_whose_ends_were_not_both_measured_has_no_rates():
    asked = spec({"kind": "sweep", "steps": 1})
    *_, step = plan_stages(asked, None, None)
    assert step([]) is None
    assert step([result(0, 4.0)]) is None
    assert step([result(0, 4.0), result(1, 40.0)]) is not None
