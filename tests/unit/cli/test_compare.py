from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from headway.cli.compare import compare_command
from headway.cli.exit_codes import ExitCode
from headway.core.errors import ConfigError
from headway.records.record import RequestRecord, StageEnded, StageStarted
from headway.records.run_dir import RunDirectory, RunFile

RATE = 50
SECONDS = 20


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., str]:
    """Writes runs of one stage whose latency is `base` plus a noise that repeats."""

    def write(name: str, latency_ms: int = 100, seed: int = 0) -> str:
        known = RunFile(
            run_id=name, created="2026-11-30T00:00:00Z", seed=seed, spec={},
            provenance={"workload_hash": "w"},
        )  # fmt: skip
        directory = RunDirectory.create(tmp_path / name, known)
        directory.append_event(
            StageStarted(
                stage=0, name="s", profile={"kind": "constant", "rate": RATE}, workers=1,
                started_wall="2026-11-30T00:00:00Z", started_monotonic_ns=1,
            )
        )  # fmt: skip
        lines = []
        for i in range(RATE * SECONDS):
            due = i * 10**9 // RATE
            done = due + (latency_ms + (i * 7919) % 13) * 10**6
            record = RequestRecord(
                stage=0, index=i, status="completed", due_ns=due, sent_ns=due, done_ns=done
            )
            lines.append(msgspec.json.encode(record) + b"\n")
        directory.append_records(b"".join(lines))
        end = SECONDS * 10**9
        directory.append_event(
            StageEnded(
                stage=0, at_ns=end, sending_ended_ns=end, reason="max_seconds",
                offered=RATE * SECONDS,
            )
        )  # fmt: skip
        directory.close()
        return str(directory.path)

    return write


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(compare_command, arguments, standalone_mode=False)


def test_a_table_for_people_and_exit_code_0_whatever_it_says(run: Callable[..., str]) -> None:
    result = invoke(run("a"), run("b", latency_ms=120))
    assert result.return_value == ExitCode.OK
    assert "B against A: worse" in result.stdout


def test_json_for_machines(run: Callable[..., str]) -> None:
    result = invoke(run("a"), run("b"), "--json", "--metric", "latency")
    comparison = json.loads(result.stdout)
    assert comparison["schema_version"] == 1
    names = [metric["name"] for metric in comparison["stages"][0]["metrics"]]
    assert names == ["latency_p50_s", "latency_p95_s", "latency_p99_s"]
    assert comparison["word"] == "cannot tell"


def test_unlike_runs_are_refused_on_stderr_with_their_own_exit_code(
    run: Callable[..., str],
) -> None:
    a, b = run("a"), run("b", seed=1)
    result = invoke(a, b)
    assert result.return_value == ExitCode.NOT_COMPARABLE
    assert result.stdout == ""
    assert "--allow-different" in result.stderr
    assert invoke(a, b, "--allow-different", "--metric", "latency_p50_s").return_value == 0
    refusal = json.loads(invoke(a, b, "--json").stdout)
    assert refusal["unlike"][0]["what"] == "seed"


@pytest.mark.parametrize(
    "wrong", [("--confidence", "100%"), ("--confidence", "x"), ("--min-change", "-1%")]
)
def test_wrong_percentages_are_named(run: Callable[..., str], wrong: tuple[str, str]) -> None:
    result = invoke(run("a"), run("b"), *wrong)
    assert isinstance(result.exception, ConfigError)
    assert str(result.exception).startswith(wrong[0])
