"""What spoils a run is named by its verdict and its exit code, seen from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import psutil

from headway.cli.exit_codes import ExitCode

BENCH = [sys.executable, "-m", "headway.cli.main", "bench"]


class Running:
    """A `headway bench` of its own process, whose plain view can be waited for."""

    def __init__(self, arguments: tuple[str, ...], run_dir: Path) -> None:
        self.run_dir = run_dir
        self.process = subprocess.Popen(
            [*BENCH, *arguments, "--no-calibrate", "--run-dir", str(run_dir)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_for_line(self, beginning: str) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if line.startswith(beginning):
                return
        raise AssertionError(f"the run ended before it printed {beginning!r}")

    def workers(self) -> list[int]:
        children = psutil.Process(self.process.pid).children()
        return [child.pid for child in children if child.is_running()]

    def end(self) -> tuple[int, dict[str, Any]]:
        """Wait for the end; the exit code and the first stage of the report."""
        assert self.process.stderr is not None
        self.process.stderr.read()
        code = self.process.wait(60)
        self.process.stderr.close()
        report = json.loads((self.run_dir / "report.json").read_text(encoding="utf-8"))
        return code, report["stages"][0]


def test_a_stalled_server_behind_a_cap_is_schedule_missed(sim: Any, tmp_path: Path) -> None:
    """Trap 27, N2: the cap hides the stall from service latency, not from response time."""
    server = sim(ttft=0.02)
    load = ("--profile", "constant", "--rate", "50", "--cap", "10", "--max-requests", "400")
    run = Running((server.url, *load, "--input", "8", "--output", "1"), tmp_path / "run")
    run.wait_for_line("stage 1")
    httpx.post(f"{server.url}/sim/freeze", json={"seconds": 2}).raise_for_status()
    code, stage = run.end()
    assert code == ExitCode.INVALID_MEASUREMENT
    assert "SCHEDULE_MISSED" in stage["verdict"]["words"]
    assert stage["counts"]["recorded"] == stage["counts"]["offered"] == 400
    assert stage["response"]["p75_s"] > 5 * stage["latency"]["p75_s"]


def test_a_worker_killed_in_the_middle_is_worker_lost(sim: Any, tmp_path: Path) -> None:
    """Trap 34: bounded time, a record for every turn, and a verdict that says why."""
    server = sim(ttft=0.3, itl=0.01)
    load = ("--streams", "20", "--max-requests", "50", "--synthetic-turns", "5", "--workers", "2")
    run = Running((server.url, *load, "--input", "8", "--output", "10"), tmp_path / "run")
    run.wait_for_line("stage 1")
    server.truth(at_least=60)
    os.kill(run.workers()[0], signal.SIGKILL)
    code, stage = run.end()
    assert code == ExitCode.INVALID_MEASUREMENT
    assert stage["verdict"]["word"] == "WORKER_LOST"
    assert stage["counts"]["recorded"] == 250
    assert stage["counts"]["duplicates"] == 0
    assert {group["category"] for group in stage["errors"]} == {"worker_lost"}
