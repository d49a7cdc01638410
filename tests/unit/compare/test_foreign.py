from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from headway.compare import CompareOptions, Comparison, Refusal, compare_paths
from headway.core.errors import ConfigError

MakeRun = Callable[..., Path]
RESULT = {
    "model_id": "m-8b", "num_prompts": 100, "request_rate": 20.0, "duration": 5.0, "completed": 100,
    "request_throughput": 19.0, "output_throughput": 380.0, "mean_ttft_ms": 22.0,
    "median_ttft_ms": 21.0, "p99_ttft_ms": 40.0,
}  # fmt: skip


@pytest.fixture
def vllm_file(tmp_path: Path) -> Path:
    file = tmp_path / "vllm.json"
    file.write_text(json.dumps(RESULT), encoding="utf-8")
    return file


def test_another_tool_s_file_is_refused_as_another_client(
    make_run: MakeRun, vllm_file: Path
) -> None:
    outcome = compare_paths(make_run("a", seconds=5), vllm_file)
    assert isinstance(outcome, Refusal)
    assert [one.what for one in outcome.unlike] == ["client", "workload"]
    assert outcome.b.imported_from == "vLLM bench"


def test_allowed_it_shows_values_and_says_that_it_cannot_tell(
    make_run: MakeRun, vllm_file: Path
) -> None:
    options = CompareOptions(allow_different=True)
    outcome = compare_paths(make_run("a", seconds=5), vllm_file, options)
    assert isinstance(outcome, Comparison)
    assert (outcome.method, outcome.word) == ("values only", "cannot tell")
    metrics = {m.name: m for m in outcome.stages[0].metrics}
    ttft = metrics["ttft_p50_s"]
    assert ttft.b == pytest.approx(0.021)
    assert ttft.a is not None
    assert ttft.change == pytest.approx(0.021 / ttft.a - 1)
    assert (ttft.low, ttft.word) == (None, "cannot tell")
    assert metrics["latency_p99_s"].b is None


def test_unequal_numbers_of_stages_ask_for_a_choice(make_run: MakeRun, vllm_file: Path) -> None:
    run = make_run("a", seconds=5, stages=("slow", "fast"))
    with pytest.raises(ConfigError, match="A has 2 stages and B 1: choose with --stage"):
        compare_paths(run, vllm_file, CompareOptions(allow_different=True))
    chosen = CompareOptions(allow_different=True, stages=["fast"])
    outcome = compare_paths(run, vllm_file, chosen)
    assert isinstance(outcome, Comparison)
    assert outcome.stages[0].name == "fast / poisson 20/s"
