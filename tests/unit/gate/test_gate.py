from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec

from headway.compare import CompareOptions
from headway.gate.gate import GateRules, gate
from headway.gate.junit import junit_xml
from headway.gate.markdown import markdown
from headway.gate.model import GateCheck, GateReport
from headway.report.conditions import parse_conditions

MakeRun = Callable[..., Path]
TPOT = CompareOptions(metrics=["tpot_p50_s"])


def judged(run: Path, slo: str = "", baseline: Path | None = None, **rules: Any) -> GateReport:
    return gate(run, baseline, GateRules(objectives=parse_conditions(slo), **rules))


def statuses(report: GateReport, kind: str) -> list[str]:
    return [check.status for check in report.checks if check.kind == kind]


def test_a_run_that_meets_everything_passes(make_run: MakeRun) -> None:
    report = judged(make_run("a"), "ttft p99 < 100ms; goodput > 15/s; error rate < 1%")
    assert report.result == "passed"
    assert statuses(report, "objective") == ["passed"] * 3


def test_a_missed_objective_is_told_with_its_value(make_run: MakeRun) -> None:
    report = judged(make_run("a"), "ttft p50 < 10ms; error rate < 1%")
    assert report.result == "objective missed"
    (missed,) = [check for check in report.checks if check.status == "failed"]
    assert missed.name == "ttft p50 < 10ms"
    assert missed.text.endswith(" ms")


def test_an_invalid_measurement_comes_before_everything_else(make_run: MakeRun) -> None:
    run = make_run("a", seconds=3)
    report = judged(run, "ttft p50 < 10ms")
    assert report.result == "invalid measurement"
    assert "TOO_FEW_SAMPLES" in report.checks[0].text
    accepted = judged(run, "ttft p50 < 100ms", accepted=frozenset({"TOO_FEW_SAMPLES"}))
    assert accepted.result == "passed"


def test_failures_are_judged_by_their_objective_where_there_is_one(make_run: MakeRun) -> None:
    run = make_run("a", error_share=0.05)
    assert judged(run, "tpot p50 < 1s").result == "invalid measurement"
    assert judged(run, "error rate < 10%").result == "passed"
    assert judged(run, "error rate < 1%").result == "objective missed"


def test_a_regression_needs_the_interval_to_show_it_beyond_the_limit(make_run: MakeRun) -> None:
    base, slower = make_run("base"), make_run("now", draw=2, slower=1.05)
    assert judged(slower, baseline=base, max_regression=0.02, compare=TPOT).result == "regression"
    assert judged(slower, baseline=base, max_regression=0.10, compare=TPOT).result == "passed"
    better = judged(base, baseline=slower, max_regression=0.02, compare=TPOT)
    assert statuses(better, "regression") == ["passed"]


def test_cannot_tell_is_an_answer_that_only_a_strict_gate_fails(make_run: MakeRun) -> None:
    base, slower = make_run("base"), make_run("now", draw=2, slower=1.05)
    near = {"baseline": base, "max_regression": 0.05, "compare": TPOT}
    lenient = judged(slower, **near)
    assert statuses(lenient, "regression") == ["cannot tell"]
    assert lenient.result == "passed"
    assert judged(slower, **near, is_strict=True).result == "cannot tell"


def test_less_throughput_and_more_errors_are_regressions_too(make_run: MakeRun) -> None:
    options = CompareOptions(metrics=["error_share", "good_share"])
    accepted: Any = frozenset({"ERRORS"})
    report = judged(
        make_run("now", draw=2, error_share=0.2),
        baseline=make_run("base"),
        compare=options,
        accepted=accepted,
    )
    assert report.result == "regression"
    assert statuses(report, "regression") == ["failed", "failed"]


def test_a_baseline_of_another_workload_is_not_a_pass(make_run: MakeRun) -> None:
    report = judged(make_run("now", seed=1), baseline=make_run("base"), compare=TPOT)
    assert report.result == "not comparable"


def test_junit_counts_what_it_lists(make_run: MakeRun) -> None:
    base, slower = make_run("base"), make_run("now", draw=2, slower=1.05)
    report = judged(slower, "ttft p50 < 1ms", base, compare=TPOT)
    suite = ElementTree.fromstring(junit_xml(report)).find("testsuite")
    assert suite is not None
    assert suite.attrib["tests"] == str(len(suite.findall("testcase"))) == "3"
    assert (suite.attrib["failures"], suite.attrib["skipped"]) == ("1", "1")
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.attrib["type"] == "objective"


def test_what_a_target_wrote_breaks_neither_xml_nor_markdown(make_run: MakeRun) -> None:
    report = judged(make_run("a", seconds=10), "ttft p50 < 1s")
    evil = GateCheck(
        kind="objective", stage="a|b", name="<script>", status="failed", text="x\x00\n| <b>"
    )
    report = msgspec.structs.replace(report, checks=[evil])
    assert ElementTree.fromstring(junit_xml(report)).find(".//failure") is not None
    row = markdown(report).splitlines()[-1]
    assert row.count("|") == 5
    assert "<" not in row


def test_markdown_has_a_table_for_each_kind(make_run: MakeRun) -> None:
    text = markdown(judged(make_run("a"), "ttft p99 < 100ms", make_run("b", draw=2), compare=TPOT))
    assert text.startswith("## Headway gate: passed")
    for heading in ("### Measurement", "### Objectives", "### Against the baseline"):
        assert heading in text
    assert "| constant 20/s | ttft p99 &lt; 100ms | pass |" in text
