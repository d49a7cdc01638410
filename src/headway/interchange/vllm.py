"""Reads the result file of `vllm bench serve --save-result`: one load, durations in milliseconds.

Its percentiles are those asked for by `--percentile-metrics` and `--metric-percentiles`: by default
there is no latency (`e2el`), and beside the median only p99. Requests that were not sent on time
are timed from when they were sent, so there is no response time.
"""

from __future__ import annotations

from typing import Any

from headway.interchange.imported import ImportedRun, ImportedStage, at, number, text

_DURATIONS = {"ttft": "ttft", "latency": "e2el", "tpot": "tpot"}
_POINTS = {"p50": ("p50", "median"), "p95": ("p95",), "p99": ("p99",)}


def is_ours(content: Any) -> bool:
    """Whether this is such a result."""
    fields = ("request_throughput", "completed", "duration", "mean_ttft_ms")
    return all(number(at(content, field)) is not None for field in fields)


def read(content: Any) -> ImportedRun:
    """The result as a run of one stage."""
    return ImportedRun(
        tool="vLLM bench",
        tool_version=None,
        created=text(content.get("date")),
        target_url=None,
        model=text(content.get("model_id")),
        stages=[ImportedStage(name=_name(content), values=_values(content))],
    )


def _name(content: Any) -> str:
    rate = number(content.get("request_rate"))
    if rate is not None:
        return f"poisson {rate:g}/s"
    streams = number(content.get("max_concurrency"))
    return f"concurrent {streams:g}" if streams else "all at once"


def _values(content: Any) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    for measure, field in _DURATIONS.items():
        for point, names in _POINTS.items():
            found = (number(content.get(f"{name}_{field}_ms"), 1e-3) for name in names)
            values[f"{measure}_{point}_s"] = next((v for v in found if v is not None), None)
    values["completed_per_s"] = number(content.get("request_throughput"))
    values["output_tokens_per_s"] = number(content.get("output_throughput"))
    values["error_share"] = _error_share(content)
    values["good_share"] = _good_share(content)
    return values


def _error_share(content: Any) -> float | None:
    completed = number(content.get("completed")) or 0.0
    failed = number(content.get("failed"))
    if failed is None:  # older versions tell only how many were asked for
        asked = number(content.get("num_prompts"))
        failed = None if asked is None else max(0.0, asked - completed)
    return None if failed is None or not completed + failed else failed / (completed + failed)


def _good_share(content: Any) -> float | None:
    good = number(content.get("request_goodput"))
    asked, duration = number(content.get("num_prompts")), number(content.get("duration"))
    return None if good is None or not asked or not duration else good * duration / asked
