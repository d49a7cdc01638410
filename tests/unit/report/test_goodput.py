from __future__ import annotations

from typing import Any

from headway.core.clock import NS_PER_S
from headway.report.columns import Columns
from headway.report.goodput import goodput
from headway.report.model import Goodput
from headway.report.objectives import ObjectiveSpec
from headway.report.window import MeasuredWindow

WINDOW = MeasuredWindow(0, 10 * NS_PER_S, "sending_ended")


def _goodput(records: list[Any], **objectives: float) -> Goodput:
    columns = Columns()
    columns.extend(records)
    found = goodput(columns, ObjectiveSpec(**objectives), WINDOW)
    assert found is not None
    return found


def test_trap_45_goodput_is_over_all_offered_requests_and_not_over_successes(make: Any) -> None:
    records = [make.completed(i, i) for i in range(4)]
    records += [make.errored(4, 4), make.never_sent(5, 5)]
    found = _goodput(records, ttft_s=0.05)
    assert (found.good, found.offered) == (4, 6)
    assert found.good_share == 4 / 6
    assert found.good_per_s == 0.4
    assert (found.objectives[0].met, found.objectives[0].missed) == (4, 2)


def test_trap_45_a_one_token_answer_does_not_pass_a_tpot_objective(make: Any) -> None:
    found = _goodput([make.completed(0, 0, tokens=1), make.completed(1, 1)], tpot_s=0.01)
    assert found.good == 1
    assert (found.objectives[0].met, found.objectives[0].undefined) == (1, 1)


def test_a_late_request_is_not_good_because_it_was_quick_once_sent(make: Any) -> None:
    """Trap 27: the cap made it wait 2 s; its user waited 2.02 s for the first token."""
    records = [make.completed(0, 0), make.completed(1, 1, late_s=2.0)]
    assert _goodput(records, ttft_s=0.1).good == 1
    assert _goodput(records, latency_s=0.5).good == 1
    assert _goodput(records, response_s=0.5).good == 1


def test_a_request_must_meet_every_objective(make: Any) -> None:
    records = [make.completed(0, 0), make.completed(1, 1, gap_s=0.05)]
    found = _goodput(records, ttft_s=0.1, tpot_s=0.01)
    assert found.good == 1
    assert [(o.name, o.met, o.missed) for o in found.objectives] == [
        ("ttft_s", 2, 0),
        ("tpot_s", 1, 1),
    ]


def test_without_objectives_there_is_no_goodput() -> None:
    assert goodput(Columns(), ObjectiveSpec(), WINDOW) is None


def test_a_limit_that_is_just_met_is_met(make: Any) -> None:
    assert _goodput([make.completed(0, 0)], ttft_s=0.02).good == 1
