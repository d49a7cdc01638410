from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headway.core.errors import ConfigError
from headway.records.run_dir import RunDirectory
from headway.report import StageReport, build
from headway.report.conditions import parse_conditions

MakeRun = Callable[..., Path]


def stage_of(path: Path) -> StageReport:
    return build(RunDirectory(path)).stages[0]


def test_several_objectives_are_read_with_their_units() -> None:
    read = parse_conditions("ttft p99 < 500ms; goodput > 20/s; error rate <= 1%\ntpot mean < 0.05s")
    assert [(o.measure, o.point, o.unit, o.limit) for o in read] == [
        ("ttft", "p99_s", "s", 0.5),
        ("goodput", None, "/s", 20.0),
        ("error rate", None, "share", 0.01),
        ("tpot", "mean_s", "s", 0.05),
    ]
    assert [o.is_upper for o in read] == [True, False, True, True]


@pytest.mark.parametrize(
    ("limit", "value", "is_met"),
    [
        ("ttft p50 < 20ms", 0.019, True),
        ("ttft p50 < 20ms", 0.02, False),
        ("ttft p50 <= 20ms", 0.02, True),
        ("goodput > 20/s", 21.0, True),
        ("goodput > 20/s", 20.0, False),
        ("goodput >= 95%", 0.95, True),
        ("ttft p50 < 20ms", None, False),
        ("ttft p50 < 20ms", float("inf"), False),
    ],
)
def test_a_number_meets_its_objective_or_not(limit: str, value: float | None, is_met: bool) -> None:
    """Trap 45: what was not measured does not pass."""
    assert parse_conditions(limit)[0].is_met_by(value) is is_met


def test_numbers_are_those_of_the_report(make_run: MakeRun) -> None:
    stage = stage_of(make_run("a"))
    assert stage.ttft is not None
    assert stage.goodput is not None
    texts = ("ttft p99 < 1s", "goodput > 1/s", "goodput > 1%", "error rate < 1%", "requests > 1/s")
    values = [parse_conditions(text)[0].read(stage) for text in texts]
    assert values == [
        stage.ttft.p99_s,
        stage.goodput.good_per_s,
        stage.goodput.good_share,
        0.0,
        stage.rates.completed_per_s,
    ]


def test_failures_count_as_infinite_in_a_percentile(make_run: MakeRun) -> None:
    """A p99 of those that survived would pass a server that drops one request of twenty."""
    stage = stage_of(make_run("a", error_share=0.05))
    p99, p90, tpot = (
        parse_conditions(text)[0].read(stage)
        for text in ("ttft p99 < 1s", "ttft p90 < 1s", "tpot p99 < 1s")
    )
    assert p99 == float("inf")
    assert stage.ttft is not None
    assert p90 is not None
    assert stage.ttft.p90_s < p90 < 0.1
    assert tpot is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ttft < 500ms", "must name one of p50"),
        ("ttft p98 < 500ms", "must name one of p50"),
        ("ttft p99 < 500", "has no unit"),
        ("ttft p99 < 5%", "needs a duration"),
        ("goodput > 20ms", "names nothing that is measured"),
        ("goodput p50 > 20/s", "names nothing that is measured"),
        ("itl p99 < 5ms", "names nothing that is measured"),
        ("nonsense", "is not an objective"),
    ],
)
def test_what_cannot_be_understood_is_named(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_conditions(f"error rate < 1%; {text}")
