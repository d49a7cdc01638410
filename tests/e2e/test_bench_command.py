"""`headway bench` as a person or a script runs it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headway.cli.exit_codes import ExitCode

LOAD = ("--streams", "4", "--max-requests", "40", "--input", "16", "--output", "8")
BENCH = [sys.executable, "-m", "headway.cli.main", "bench"]


def run(arguments: tuple[str, ...], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*BENCH, *arguments], cwd=cwd, capture_output=True, text=True, timeout=60)


def test_json_on_standard_output_is_the_report_and_nothing_else(sim: Any, tmp_path: Path) -> None:
    done = run((sim(ttft=0.005).url, *LOAD, "--no-calibrate", "--json"), tmp_path)
    report = json.loads(done.stdout)
    assert report["stages"][0]["counts"]["completed"] == 40
    assert "stage 1" in done.stderr


def test_a_run_directory_is_never_overwritten(sim: Any, tmp_path: Path) -> None:
    server = sim()
    arguments = (server.url, *LOAD, "--no-calibrate", "--run-dir", "kept", "--quiet")
    run(arguments, tmp_path)
    records = (tmp_path / "kept" / "records.jsonl").read_bytes()
    again = run(arguments, tmp_path)
    assert again.returncode == ExitCode.USAGE
    assert "already holds a run" in again.stderr
    assert (tmp_path / "kept" / "records.jsonl").read_bytes() == records


def test_the_report_of_a_run_is_rebuilt_from_its_records(sim: Any, tmp_path: Path) -> None:
    """Trap 47: files written only at the end are lost with the process."""
    run((sim().url, *LOAD, "--no-calibrate", "--run-dir", "run", "--quiet"), tmp_path)
    report = tmp_path / "run" / "report.json"
    first = json.loads(report.read_text(encoding="utf-8"))
    report.unlink()
    rebuilt = subprocess.run(
        [sys.executable, "-m", "headway.cli.main", "report", "run"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert rebuilt.returncode == 0, rebuilt.stderr
    assert json.loads(report.read_text(encoding="utf-8")) == first


def test_a_file_says_all_that_flags_say(sim: Any, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(
        f"""
target: {{url: "{sim(ttft=0.005).url}"}}
inputs: {{kind: synthetic, prompt_tokens: 16, output_tokens: 8}}
profile:
  kind: stages
  stages:
    - {{name: few, profile: {{kind: concurrent, streams: [2]}}, max_requests: 10}}
    - {{name: paced, profile: {{kind: constant, rate: [100]}}, max_requests: 20}}
calibrate: false
""",
        encoding="utf-8",
    )
    done = run(("run.yaml", "--seed", "3", "--json"), tmp_path)
    report = json.loads(done.stdout)
    assert [stage["name"] for stage in report["stages"]] == ["few", "paced"]
    assert [stage["counts"]["completed"] for stage in report["stages"]] == [10, 20]
    assert report["run"]["seed"] == 3


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_keeps_what_was_measured(sim: Any, tmp_path: Path, times: int) -> None:
    """L8: once is graceful, twice is now; both leave a whole report and exit code 130."""
    server = sim(ttft=0.005)
    load = ("--streams", "2", "--max-seconds", "50s", "--input", "16", "--output", "64")
    arguments = (server.url, *load, "--no-calibrate", "--run-dir", "run")
    with subprocess.Popen(
        [*BENCH, *arguments], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if re.match(r" +([5-9]|[1-9]\d+) s", line):
                break
        for _ in range(times):
            process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(30) == ExitCode.INTERRUPTED, rest
    report = json.loads((tmp_path / "run" / "report.json").read_text(encoding="utf-8"))
    assert report["stages"][0]["counts"]["completed"] > 0
    assert report["stages"][0]["ended_reason"] == "interrupted"


def test_secrets_appear_nowhere_in_what_a_run_leaves(sim: Any, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("sk-very-secret-4711\n", encoding="utf-8")
    server = sim(api_key="sk-very-secret-4711")
    header = "Cookie: session=also-secret-0815"
    secrets = ("--api-key-file", str(key), "--header", header)
    done = run((server.url, *LOAD, *secrets, "--no-calibrate", "--run-dir", "run"), tmp_path)
    assert done.returncode in (ExitCode.OK, ExitCode.INVALID_MEASUREMENT), done.stderr
    for file in (tmp_path / "run").rglob("*"):
        text = file.read_text(encoding="utf-8")
        assert "sk-very-secret-4711" not in text, file
        assert "also-secret-0815" not in text, file
    assert "secret" not in done.stdout + done.stderr


def test_help_is_grouped_and_has_examples(tmp_path: Path) -> None:
    done = run(("--help",), tmp_path)
    for heading in ("Target:", "Inputs:", "Load:", "Stop rules:", "Output:", "Examples:"):
        assert heading in done.stdout
