"""Reads GuideLLM's `benchmarks.json`, of the report formats 1 (up to 0.6) and 2 (from 0.7).

Its `inter_token_latency_ms` is (last token − first token) / (tokens − 1) of a request, which is
TPOT here; its `time_per_output_token_ms` includes the first token and has no counterpart.
"""

from __future__ import annotations

from typing import Any

from headway.interchange.imported import ImportedRun, ImportedStage, at, number, numbered, text

_DURATIONS = {
    "ttft": ("time_to_first_token_ms", 1e-3),
    "latency": ("request_latency", 1.0),
    "response": ("request_scheduled_latency", 1.0),
    "tpot": ("inter_token_latency_ms", 1e-3),
}
_POINTS = ("p50", "p95", "p99")


def is_ours(content: Any) -> bool:
    """Whether this is a GuideLLM report."""
    benchmarks = at(content, "benchmarks")
    return (
        isinstance(benchmarks, list)
        and bool(benchmarks)
        and all(at(b, "metrics", "request_totals") is not None for b in benchmarks)
    )


def read(content: Any) -> ImportedRun:
    """The report's benchmarks as stages."""
    benchmarks = content["benchmarks"]
    names = numbered([_name(benchmark) for benchmark in benchmarks])
    first = benchmarks[0]
    return ImportedRun(
        tool="GuideLLM",
        tool_version=text(at(content, "metadata", "guidellm_version")),
        created=None,
        target_url=_first(content, first, "target"),
        model=_first(content, first, "model"),
        stages=[
            ImportedStage(name=name, values=_values(benchmark["metrics"]))
            for name, benchmark in zip(names, benchmarks, strict=True)
        ],
    )


def _name(benchmark: Any) -> str:
    strategy = at(benchmark, "config", "strategy")
    kind = text(at(strategy, "type_")) or "benchmark"
    if kind == "concurrent" and (streams := number(at(strategy, "streams"))):
        return f"concurrent {streams:g}"
    rate = number(at(strategy, "rate"))
    return f"{kind} {rate:g}/s" if rate else kind


def _first(content: Any, benchmark: Any, field: str) -> str | None:
    places = (
        (benchmark, "config", "backend"),
        (content, "config", "spec", "backend"),
        (content, "args"),
    )
    return next((found for part, *path in places if (found := text(at(part, *path, field)))), None)


def _values(metrics: Any) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    for measure, (field, scale) in _DURATIONS.items():
        for point in _POINTS:
            value = at(metrics, field, "successful", "percentiles", point)
            values[f"{measure}_{point}_s"] = _measured(number(value, scale), metrics, field)
    values["completed_per_s"] = number(at(metrics, "requests_per_second", "successful", "mean"))
    values["output_tokens_per_s"] = number(
        at(metrics, "output_tokens_per_second", "successful", "mean")
    )
    totals = at(metrics, "request_totals")
    good, bad = number(at(totals, "successful")), number(at(totals, "errored"))
    ended = (good or 0.0) + (bad or 0.0)
    values["error_share"] = bad / ended if bad is not None and ended else None
    values["good_share"] = None
    return values


def _measured(value: float | None, metrics: Any, field: str) -> float | None:
    """GuideLLM writes 0 for distributions of nothing; nothing is not 0."""
    return None if number(at(metrics, field, "successful", "count")) == 0 else value
