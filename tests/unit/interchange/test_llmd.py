"""L14: the llm-d benchmark report, validated by that project's own package."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from llmd_benchmark_report import BenchmarkReportV021, load_benchmark_report

from headway.interchange.llmd import llmd_reports
from headway.records.run_dir import RunDirectory
from headway.report import build

MakeRun = Callable[..., Path]


def exported(run: Path) -> list[dict[str, Any]]:
    reports = llmd_reports(build(RunDirectory(run)))
    return json.loads(json.dumps(reports))


def test_the_project_s_own_package_accepts_it(make_run: MakeRun) -> None:
    run = make_run("a", error_share=0.05)
    (report,) = exported(run)
    read: Any = load_benchmark_report(report)
    assert isinstance(read, BenchmarkReportV021)
    aggregate = read.results.request_performance.aggregate
    stage = build(RunDirectory(run)).stages[0]
    assert stage.ttft is not None
    assert aggregate.latency.time_to_first_token.p99 == stage.ttft.p99_s
    assert aggregate.requests.failures == stage.counts.errored
    assert aggregate.throughput.request_rate.mean == pytest.approx(stage.rates.completed_per_s)
    assert read.scenario.load.standardized.rate_qps == 20
    assert read.scenario.load.native.config["verdict"] == stage.verdict.word


def test_each_stage_is_a_report_of_its_own(make_run: MakeRun) -> None:
    reports = exported(make_run("a", stages=("one", "two"), seconds=6))
    assert [r["scenario"]["load"]["standardized"]["stage"] for r in reports] == [0, 1]
    assert len({r["run"]["uid"] for r in reports}) == 2
    assert len({r["run"]["eid"] for r in reports}) == 1
    for report in reports:
        load_benchmark_report(report)


def test_what_was_not_measured_is_absent_and_still_accepted(make_run: MakeRun) -> None:
    """Trap 45: no zeros for a target that does not stream and counts nothing."""
    nothing = dict.fromkeys(
        ("first_token_ns", "last_token_ns", "input_tokens", "output_tokens", "output_tokens_source")
    )
    (report,) = exported(make_run("a", seconds=6, **nothing))
    load_benchmark_report(report)
    aggregate = report["results"]["request_performance"]["aggregate"]
    assert set(aggregate["latency"]) == {"request_latency"}
    assert set(aggregate["throughput"]) == {"request_rate"}
    assert "scenario" not in report
