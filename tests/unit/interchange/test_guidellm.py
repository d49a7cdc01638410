"""Small files in the shape that GuideLLM writes, of its report formats 1 and 2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.core.errors import InputError
from headway.interchange.imported import read_imported


def distribution(count: int = 90, **percentiles: float) -> dict[str, Any]:
    return {"successful": {"count": count, "mean": 9.0, "percentiles": percentiles}}


def benchmark(strategy: dict[str, Any], **metrics: Any) -> dict[str, Any]:
    return {
        "config": {"strategy": strategy, "backend": {"target": "http://t:8000", "model": "m-8b"}},
        "metrics": {
            "request_totals": {"successful": 90, "errored": 10, "incomplete": 4, "total": 104},
            "requests_per_second": {"successful": {"count": 90, "mean": 8.5}},
            "output_tokens_per_second": {"successful": {"count": 90, "mean": 340.0}},
            "request_latency": distribution(p50=1.5, p95=2.0, p99=2.5),
            "time_to_first_token_ms": distribution(p50=20.0, p95=40.0, p99=80.0),
            "inter_token_latency_ms": distribution(p50=5.0, p95=6.0, p99=7.0),
            **metrics,
        },
    }


def write(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_format_2_gives_stages_in_our_units(tmp_path: Path) -> None:
    content = {
        "metadata": {"version": 2, "guidellm_version": "0.8.1"},
        "benchmarks": [
            benchmark({"type_": "synchronous"}),
            benchmark(
                {"type_": "constant", "rate": 4.0},
                request_scheduled_latency=distribution(p50=1.6, p95=2.2, p99=3.0),
            ),
        ],
    }
    run = read_imported(write(tmp_path / "benchmarks.json", content))
    assert (run.tool, run.tool_version, run.model) == ("GuideLLM", "0.8.1", "m-8b")
    assert [stage.name for stage in run.stages] == ["synchronous", "constant 4/s"]
    values = run.stages[1].values
    assert values["ttft_p99_s"] == pytest.approx(0.08)
    assert values["latency_p50_s"] == 1.5
    assert values["response_p95_s"] == 2.2
    assert values["tpot_p50_s"] == pytest.approx(0.005)
    assert values["completed_per_s"] == 8.5
    assert values["error_share"] == pytest.approx(0.1)


def test_what_the_file_lacks_is_null(tmp_path: Path) -> None:
    """Trap 45: GuideLLM writes 0 for a distribution of nothing."""
    none = {"successful": {"count": 0, "mean": 0.0, "percentiles": {"p50": 0.0}}}
    content = {
        "args": {"target": "http://t:8000", "model": "m-1"},
        "benchmarks": [benchmark({"type_": "throughput"}, time_to_first_token_ms=none)],
    }
    del content["benchmarks"][0]["config"]["backend"]
    run = read_imported(write(tmp_path / "v1.json", content))
    assert (run.model, run.tool_version, run.target_url) == ("m-1", None, "http://t:8000")
    values = run.stages[0].values
    assert values["ttft_p50_s"] is None
    assert values["response_p99_s"] is None
    assert values["good_share"] is None


def test_stages_of_the_same_name_are_numbered(tmp_path: Path) -> None:
    same = benchmark({"type_": "concurrent", "streams": 8})
    run = read_imported(write(tmp_path / "b.json", {"benchmarks": [same, same]}))
    assert [stage.name for stage in run.stages] == ["concurrent 8", "concurrent 8 (2)"]


@pytest.mark.parametrize("content", ["[]", '{"benchmarks": []}', '{"a": 1}', "nonsense", '"x"'])
def test_a_file_of_no_known_tool_is_a_clear_error(tmp_path: Path, content: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"x\.json is (neither a run directory|not JSON)"):
        read_imported(file)
