"""The gate: whether a run is good enough to let a change through."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headway.compare import CompareOptions, Comparison, Refusal, compare_runs
from headway.compare.difference import Difference, holm
from headway.compare.model import MetricComparison, StageComparison
from headway.compare.terminal import change_text, interval_text, metric_label
from headway.core.errors import ConfigError
from headway.gate.model import GateCheck, GateReport, Result
from headway.records.run_dir import RunDirectory
from headway.report.conditions import Condition
from headway.report.model import StageReport, VerdictWord
from headway.report.run import build


@dataclass(frozen=True, kw_only=True)
class GateRules:
    """What a run must be like.

    Args:
        objectives: Each must be met in every stage that is looked at.
        max_regression: The largest change for the worse against the baseline; a share of the
            baseline's value, or for shares the difference.
        accepted: Verdict words that do not make a stage invalid.
        is_strict: Whether it fails when a regression can be neither shown nor ruled out.
        compare: Which stages and metrics are looked at, and how strictly.
    """

    objectives: Sequence[Condition] = ()
    max_regression: float = 0.05
    accepted: frozenset[VerdictWord] = frozenset()
    is_strict: bool = False
    compare: CompareOptions = field(default_factory=CompareOptions)


def gate(run: Path, baseline: Path | None, rules: GateRules) -> GateReport:
    """Judge a run.

    Args:
        run: Its directory.
        baseline: The run directory it is held against; None: objectives only.
        rules: What it must be like.

    Raises:
        ConfigError: one is no run directory, or a stage is asked for that is not there.
        InputError: the records of one are damaged.
    """
    counted = build(RunDirectory(run)).counted
    stages = [stage for stage in counted if rules.compare.wants_stage(stage.name)]
    if not counted:
        raise ConfigError(f"{run} has no stage to judge")
    if not stages:
        asked = " or ".join(rules.compare.stages)
        names = ", ".join(stage.name for stage in counted)
        raise ConfigError(f"{run} has no stage called {asked}; it has {names}")
    checks = [check for stage in stages for check in _stage_checks(stage, rules)]
    comparison = None
    if baseline is not None:
        comparison = compare_runs(baseline, run, rules.compare)
        checks.extend(_regressions(comparison, rules))
    return GateReport(
        run=str(run),
        baseline=None if baseline is None else str(baseline),
        result=_result(checks, comparison, rules),
        checks=checks,
        comparison=comparison,
    )


def _result(
    checks: Sequence[GateCheck], comparison: Comparison | Refusal | None, rules: GateRules
) -> Result:
    failed = {check.kind for check in checks if check.status == "failed"}
    if "measurement" in failed:
        return "invalid measurement"
    if "objective" in failed:
        return "objective missed"
    if isinstance(comparison, Refusal):
        return "not comparable"
    if "regression" in failed:
        return "regression"
    unsure = any(check.status == "cannot tell" for check in checks)
    return "cannot tell" if unsure and rules.is_strict else "passed"


def _stage_checks(stage: StageReport, rules: GateRules) -> Iterator[GateCheck]:
    yield _measurement(stage, rules)
    for objective in rules.objectives:
        value = objective.read(stage)
        is_met = objective.is_met_by(value)
        yield GateCheck(
            kind="objective",
            stage=stage.name,
            name=objective.text,
            status="passed" if is_met else "failed",
            text=objective.shown(value),
            # JSON has no infinite number; the text says it.
            value=value if value is not None and math.isfinite(value) else None,
        )


def _measurement(stage: StageReport, rules: GateRules) -> GateCheck:
    """Whether the stage's numbers may be used at all."""
    accepted = set(rules.accepted)
    if any(objective.measure == "error rate" for objective in rules.objectives):
        # Too many failures are the target's doing, and an objective judges them.
        accepted.add("ERRORS")
    words = [word for word in stage.verdict.words if word not in accepted]
    texts = [c.text for c in stage.verdict.checks if c.failed and c.word in words]
    if stage.partial:
        texts.insert(0, "the stage is partial")
    said = ", ".join(stage.verdict.words) or "VALID"
    return GateCheck(
        kind="measurement",
        stage=stage.name,
        name="the measurement is valid",
        status="failed" if words or stage.partial else "passed",
        text=f"{said}: {'; '.join(texts)}" if texts else said,
    )


def _regressions(comparison: Comparison | Refusal, rules: GateRules) -> Iterator[GateCheck]:
    if isinstance(comparison, Refusal):
        for one in comparison.unlike:
            yield GateCheck(
                kind="regression", stage="", name=f"same {one.what} as the baseline",
                status="failed", text=one.text,
            )  # fmt: skip
        return
    pairs = [(stage, metric) for stage in comparison.stages for metric in stage.metrics]
    judged = [(stage, metric, _worsening(metric)) for stage, metric in pairs]
    known = [worsening for _, _, worsening in judged if worsening is not None]
    limit = rules.max_regression
    chances = [1 - w.exceeds(_scaled_limit(w, limit)) for w in known]
    counted = iter(holm(chances, (1 - comparison.confidence) / 2))
    for stage, metric, worsening in judged:
        if worsening is not None:
            yield _regression(stage, metric, worsening, next(counted), limit, comparison.confidence)
        elif metric.a is not None or metric.b is not None:
            yield _check(stage, metric, "cannot tell", metric.reason)


@dataclass(frozen=True)
class _Worsening(Difference):
    """A difference counted so that more is worse."""

    is_relative: bool = True


def _worsening(metric: MetricComparison) -> _Worsening | None:
    """None where the comparison has no interval."""
    if metric.change is None or metric.standard_error is None or metric.freedom is None:
        return None
    is_relative = metric.scale == "relative"
    value = math.log1p(metric.change) if is_relative else metric.change
    sign = 1 if metric.better == "lower" else -1
    return _Worsening(sign * value, metric.standard_error, metric.freedom, is_relative)


def _scaled_limit(worsening: _Worsening, limit: float) -> float:
    # Of a rate, "5% worse" is a twentieth less; on the logarithm that is as far as 5.3% more of a
    # duration. The same distance for both keeps the rule symmetrical: +5% there, −4.8% here.
    return math.log1p(limit) if worsening.is_relative else limit


def _regression(
    stage: StageComparison,
    metric: MetricComparison,
    worsening: _Worsening,
    is_beyond: bool,
    limit: float,
    confidence: float,
) -> GateCheck:
    scaled = _scaled_limit(worsening, limit)
    text = f"{change_text(metric, metric.change)} ({confidence:.0%}: {interval_text(metric)})"
    if is_beyond:
        return _check(stage, metric, "failed", text)
    if worsening.interval(confidence)[1] <= scaled:
        return _check(stage, metric, "passed", text)
    return _check(stage, metric, "cannot tell", text)


def _check(stage: StageComparison, metric: MetricComparison, status: str, text: str) -> GateCheck:
    return GateCheck(
        kind="regression",
        stage=stage.name,
        name=metric_label(metric.name),
        status=status,  # type: ignore[arg-type] # the callers pass the three words
        text=text,
        value=metric.change,
    )
