"""What a benchmark's job returns: the report's main figures. The report itself is an artifact."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from headway.load import RunResult
from headway.report.model import DurationSummary, Report, StageReport
from headway.report.search import search_finding


class StageFigures(BaseModel):
    """One stage. What was not measured is null."""

    model_config = ConfigDict(frozen=True)

    stage: int
    name: str
    verdict: str
    partial: bool
    asked_per_s: float | None
    completed_per_s: float | None
    output_tokens_per_s: float | None
    offered: int
    completed: int
    errored: int
    cancelled: int
    ttft_p50_s: float | None
    ttft_p99_s: float | None
    latency_p50_s: float | None
    latency_p99_s: float | None
    response_p99_s: float | None
    lateness_p99_s: float | None
    good_share: float | None


class BenchResult(BaseModel):
    """One run.

    Attributes:
        outcome: As `RunResult.outcome`: whether every stage took place, or what ended the run.
        completed: Requests that completed in the whole run, warm-up included.
        verdict: VALID when every stage is; else the first cause why the numbers cannot be trusted.
        search_rate_per_s: The highest rate that meets the objectives, of a search that found one.
        resumed: How often the run lost its process and went on.
    """

    model_config = ConfigDict(frozen=True)

    run_id: str
    outcome: str
    completed: int
    verdict: str
    target_url: str | None
    model: str | None
    resumed: int
    search_rate_per_s: float | None = None
    stages: tuple[StageFigures, ...]


def result_of(result: RunResult, report: Report) -> BenchResult:
    """The figures of a run that came to an end."""
    finding = search_finding(report)
    return BenchResult(
        run_id=result.run_id,
        outcome=result.outcome,
        completed=sum(stage.completed for stage in result.stages),
        verdict=report.verdict,
        target_url=report.run.target_url,
        model=report.run.model,
        resumed=sum(note.topic == "resumed" for note in report.notes),
        search_rate_per_s=finding.rate_per_s if finding else None,
        stages=tuple(_figures(stage) for stage in report.stages),
    )


def _figures(stage: StageReport) -> StageFigures:
    rates, counts = stage.rates, stage.counts
    values: dict[str, Any] = {
        "asked_per_s": rates.asked_per_s,
        "completed_per_s": rates.completed_per_s,
        "output_tokens_per_s": rates.output_tokens_per_s,
        "offered": counts.offered,
        "completed": counts.completed,
        "errored": counts.errored,
        "cancelled": counts.cancelled,
        "ttft_p50_s": _p50(stage.ttft),
        "ttft_p99_s": _p99(stage.ttft),
        "latency_p50_s": _p50(stage.latency),
        "latency_p99_s": _p99(stage.latency),
        "response_p99_s": _p99(stage.response),
        "lateness_p99_s": _p99(stage.lateness),
        "good_share": None if stage.goodput is None else stage.goodput.good_share,
    }
    return StageFigures(
        stage=stage.stage,
        name=stage.name,
        verdict=stage.verdict.word,
        partial=stage.partial,
        **values,
    )


def _p50(summary: DurationSummary | None) -> float | None:
    return None if summary is None else summary.p50_s


def _p99(summary: DurationSummary | None) -> float | None:
    return None if summary is None else summary.p99_s
