"""Small files in the shape that `vllm bench serve --save-result` writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.interchange.imported import read_imported

RESULT: dict[str, Any] = {
    "date": "20261130-120000",
    "endpoint_type": "openai-chat",
    "model_id": "m-8b",
    "tokenizer_id": "m-8b",
    "num_prompts": 100,
    "request_rate": 4.0,
    "burstiness": 1.0,
    "max_concurrency": None,
    "duration": 25.0,
    "completed": 95,
    "total_input_tokens": 9500,
    "total_output_tokens": 3800,
    "request_throughput": 3.8,
    "request_goodput": None,
    "output_throughput": 152.0,
    "total_token_throughput": 532.0,
    "mean_ttft_ms": 30.0,
    "median_ttft_ms": 25.0,
    "std_ttft_ms": 9.0,
    "p99_ttft_ms": 80.0,
    "mean_tpot_ms": 5.1,
    "median_tpot_ms": 5.0,
    "std_tpot_ms": 0.4,
    "p99_tpot_ms": 7.0,
}


def imported(path: Path, **fields: Any) -> Any:
    file = path / "result.json"
    file.write_text(json.dumps({**RESULT, **fields}), encoding="utf-8")
    return read_imported(file)


def test_the_result_is_one_stage_in_our_units(tmp_path: Path) -> None:
    run = imported(tmp_path)
    assert (run.tool, run.model, run.created) == ("vLLM bench", "m-8b", "20261130-120000")
    (stage,) = run.stages
    assert stage.name == "poisson 4/s"
    assert stage.values["ttft_p50_s"] == pytest.approx(0.025)
    assert stage.values["ttft_p99_s"] == pytest.approx(0.08)
    assert stage.values["tpot_p99_s"] == pytest.approx(0.007)
    assert stage.values["completed_per_s"] == 3.8
    assert stage.values["error_share"] == pytest.approx(0.05)


def test_what_was_not_asked_for_is_null(tmp_path: Path) -> None:
    values = imported(tmp_path).stages[0].values
    assert values["ttft_p95_s"] is None
    assert values["latency_p50_s"] is None
    assert values["good_share"] is None


def test_newer_fields_are_read_where_they_are(tmp_path: Path) -> None:
    fields = {"failed": 1, "request_goodput": 2.0, "median_e2el_ms": 900.0, "p95_ttft_ms": 60.0}
    values = imported(tmp_path, **fields).stages[0].values
    assert values["error_share"] == pytest.approx(1 / 96)
    assert values["good_share"] == pytest.approx(0.5)
    assert values["latency_p50_s"] == pytest.approx(0.9)
    assert values["ttft_p95_s"] == pytest.approx(0.06)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"request_rate": "inf", "max_concurrency": 8}, "concurrent 8"),
        ({"request_rate": "inf"}, "all at once"),
    ],
)
def test_the_load_names_the_stage(tmp_path: Path, fields: dict[str, Any], name: str) -> None:
    assert imported(tmp_path, **fields).stages[0].name == name
