from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from headway.client.models import Job
from headway.dashboard.reader import Reader
from headway.dashboard.runs import Run
from headway.dashboard.targets_page import targets_of, targets_page
from headway.operations.result import BenchResult, StageFigures
from headway.store.targets import TargetRow

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def run(
    number: int, state: str, target: str = "http://a:1", tokens: int = 8, priority: int = 0
) -> Run:
    made = NOW - timedelta(hours=number)
    ended = state == "SUCCEEDED"
    job = Job.model_validate(
        {
            "id": f"job{number}", "operation": "bench", "lane": "long", "state": state,
            "concurrency_key": f"target {target}", "created_by": "x", "workspace": "default",
            "priority": priority, "created_at": made, "started_at": made if ended else None,
            "ended_at": made + timedelta(minutes=3) if ended else None,
        }
    )  # fmt: skip
    result = _result(float(number)) if ended else None
    return Run(job, {"inputs": {"output_tokens": tokens}}, result)


def _result(rate: float) -> BenchResult:
    figures: dict[str, Any] = dict.fromkeys(StageFigures.model_fields)
    figures |= {
        "stage": 0, "name": "poisson 10/s", "verdict": "VALID", "partial": False, "offered": 9,
        "completed": 9, "errored": 0, "cancelled": 0, "completed_per_s": rate,
    }  # fmt: skip
    stage = StageFigures.model_validate(figures)
    return BenchResult(
        run_id="r", outcome="completed", verdict="VALID", target_url=None, model="m", resumed=0,
        completed=9,
        stages=(stage,),
    )  # fmt: skip


def test_each_target_has_its_own_runs_and_its_line_in_order() -> None:
    runs = [
        run(1, "PENDING"), run(2, "PENDING", priority=5), run(3, "RUNNING"), run(4, "PENDING"),
        run(5, "SUCCEEDED", target="http://b:1"),
    ]  # fmt: skip
    first, second = targets_of(runs)
    assert [each.job.id for each in first.waiting] == ["job2", "job4", "job1"]
    assert [each.job.id for each in second.runs] == ["job5"]


def test_history_draws_one_chart_a_metric_of_like_runs_only() -> None:
    """Runs with other prompts or replies are another measurement: they share no line."""
    runs = [run(1, "SUCCEEDED"), run(2, "SUCCEEDED"), run(3, "SUCCEEDED", tokens=999)]
    page = targets_page(targets_of(runs), "", NOW, Reader())
    assert "2 runs with the model and the requests of the newest" in page
    assert "1 with other requests are left out" in page
    # Only the rate was measured: what was not has no chart.
    assert page.count('class="plot"') == 1
    assert page.count('class="point t1"') == 2


def test_a_metric_that_no_run_has_is_no_chart_of_zeros() -> None:
    page = targets_page(targets_of([run(1, "SUCCEEDED")]), "", NOW, Reader())
    assert "Completed requests" in page
    assert ">TTFT p50<" not in page


def test_what_may_be_measured_is_listed_with_its_ceilings_and_escaped() -> None:
    registered = TargetRow(
        name="gpu-a", url="http://gpu-a:8000", reach="private", workspaces=("blue",),
        max_rate_per_s=50.0, lock_group="<node>", secret="gpu-a-key", changed_at=NOW,
        changed_by="root",
    )  # fmt: skip
    page = targets_page([], "", NOW, Reader(), [registered])
    for words in ("gpu-a", "http://gpu-a:8000", "50", "&lt;node&gt;", "secret gpu-a-key"):
        assert words in page
    assert "<node>" not in page
    assert "Registered" not in targets_page([], "", NOW, Reader())


def test_where_nothing_may_be_measured_no_run_is_offered() -> None:
    shared = targets_page([], "0", NOW, Reader(name="ada", workspace="infer"))
    assert "headway targets set NAME URL --for infer" in shared
    assert "Start a run" not in shared
    own = targets_page([], "0", NOW, Reader())
    assert "Start a run" in own
