"""A stage as a benchmark report of the llm-d project, schema version 0.2.1, one report a stage.

What the format has no field for (response time from the due time, verdict, goodput) stands under
the load's native configuration. Its `request_latency` is service latency, from sent to done.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from headway.report.model import DurationSummary, Report, StageReport, TokenSummary

LLMD_SCHEMA_VERSION = "0.2.1"
_SOURCES = {"synthetic": "random", "file": "sampled"}


def llmd_reports(report: Report) -> list[dict[str, Any]]:
    """One report for each stage of a run, ready for JSON or YAML; absent values are left out."""
    return [_pruned(_report(report, stage)) for stage in report.counted]


def _report(report: Report, stage: StageReport) -> dict[str, Any]:
    return {
        "version": LLMD_SCHEMA_VERSION,
        "run": {
            "uid": f"{report.run.run_id}-{stage.stage}",
            "eid": report.run.run_id,
            "time": _time(stage),
            "description": (
                f"Headway run of {report.run.target_url}, stage {stage.name}: {stage.verdict.word}"
            ),
            "keywords": [f"{key}={value}" for key, value in sorted(report.run.labels.items())],
        },
        # The format requires an input length there, and an unknown one must not be written as 0.
        "scenario": {"load": _load(report, stage)} if stage.tokens.input else None,
        "results": {"request_performance": {"aggregate": _aggregate(stage)}},
    }


def _time(stage: StageReport) -> dict[str, Any]:
    """When the measured window was."""
    duration_s = stage.window.duration_s
    known = {"duration": f"PT{duration_s:.6f}S"}
    if stage.started_wall:
        start = datetime.fromisoformat(stage.started_wall)
        known["start"] = (start + timedelta(seconds=stage.window.start_s)).isoformat()
        known["end"] = (start + timedelta(seconds=stage.window.end_s)).isoformat()
    return known


def _load(report: Report, stage: StageReport) -> dict[str, Any]:
    provenance = report.run.provenance
    inputs = report.run.spec.get("inputs") or {}
    return {
        "metadata": {"cfg_id": provenance.get("workload_hash")},
        "standardized": {
            "tool": "headway",
            "tool_version": str((provenance.get("versions") or {}).get("headway", "unknown")),
            "parallelism": stage.workers,
            "source": _SOURCES.get(str(inputs.get("kind")), "unknown"),
            "stage": stage.stage,
            "input_seq_len": _length(stage.tokens.input),
            "output_seq_len": _length(stage.tokens.output),
            "rate_qps": stage.rates.asked_per_s,
            "concurrency": stage.profile.get("streams"),
        },
        "native": {
            "config": {
                "spec": report.run.spec,
                "profile": stage.profile,
                "seed": report.run.seed,
                "verdict": stage.verdict.word,
                "verdict_words": stage.verdict.words,
                "response_s": _points(stage.response),
                "good_share": stage.goodput.good_share if stage.goodput else None,
                "output_tokens_sources": stage.tokens.output_sources,
            }
        },
    }


def _length(summary: TokenSummary | None) -> dict[str, Any] | None:
    """The tokens of a request as they were measured."""
    if summary is None:
        return None
    is_fixed = summary.min_tokens == summary.max_tokens
    return {
        "distribution": "fixed" if is_fixed else "other",
        "value": summary.mean_tokens,
        "min": summary.min_tokens,
        "max": max(1, summary.max_tokens),
    }


def _aggregate(stage: StageReport) -> dict[str, Any]:
    counts, rates = stage.counts, stage.rates
    return {
        "requests": {
            "total": counts.offered,
            "failures": counts.errored,
            "incomplete": counts.cancelled,
            "input_length": _tokens(stage.tokens.input),
            "output_length": _tokens(stage.tokens.output),
        },
        "latency": {
            "time_to_first_token": _statistics(stage.ttft, "s"),
            "time_per_output_token": _statistics(stage.tpot, "s/token"),
            "request_latency": _statistics(stage.latency, "s"),
        },
        "throughput": {
            "input_token_rate": _rate(rates.input_tokens_per_s, "tokens/s"),
            "output_token_rate": _rate(rates.output_tokens_per_s, "tokens/s"),
            "request_rate": _rate(rates.completed_per_s, "queries/s"),
        },
    }


def _statistics(summary: DurationSummary | None, units: str) -> dict[str, Any] | None:
    if summary is None:
        return None
    return {
        "units": units,
        "mean": summary.mean_s,
        "stddev": summary.sd_s,
        "min": summary.min_s,
        "p50": summary.p50_s,
        "p75": summary.p75_s,
        "p90": summary.p90_s,
        "p95": summary.p95_s,
        "p99": summary.p99_s,
        "p99p9": summary.p999_s,
        "max": summary.max_s,
    }


def _points(summary: DurationSummary | None) -> dict[str, float] | None:
    if summary is None:
        return None
    return {"p50": summary.p50_s, "p95": summary.p95_s, "p99": summary.p99_s}


def _tokens(summary: TokenSummary | None) -> dict[str, Any] | None:
    if summary is None:
        return None
    return {
        "units": "count",
        "mean": summary.mean_tokens,
        "min": summary.min_tokens,
        "p50": summary.p50_tokens,
        "p95": summary.p95_tokens,
        "max": summary.max_tokens,
    }


def _rate(per_s: float | None, units: str) -> dict[str, Any] | None:
    return None if per_s is None else {"units": units, "mean": per_s}


def _pruned(value: Any) -> Any:
    """Without nulls and without what is empty then: the format tells absence by absence."""
    if not isinstance(value, dict):
        return value
    kept = {key: _pruned(item) for key, item in value.items()}
    return {key: item for key, item in kept.items() if item is not None and item != {}}
