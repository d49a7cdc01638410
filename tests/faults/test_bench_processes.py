"""`headway bench` as a process, hurt from outside: bounded time, right records, the right exit
code, nothing left behind (L8)."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import psutil
import pytest

from headway.cli.exit_codes import ExitCode
from headway.core.clock import NS_PER_S, monotonic_ns

BENCH = [sys.executable, "-m", "headway.cli.main", "bench", "--no-calibrate"]
DEADLINE_S = 60.0
MARK = "HEADWAY_TEST_MARK"


class Bench:
    """A run of its own process group, whose processes can be told from all others."""

    def __init__(self, run_dir: Path, *arguments: str) -> None:
        self.run_dir = run_dir
        self.mark = uuid.uuid4().hex
        self.process = subprocess.Popen(
            [*BENCH, "--run-dir", str(run_dir), *arguments],
            env={**os.environ, MARK: self.mark, "PYTHONPATH": str(Path(__file__).parent)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def until(self, line: str) -> None:
        """Wait for a line of the plain view."""
        assert self.process.stderr is not None
        for said in self.process.stderr:
            if said.startswith(line):
                return
        raise AssertionError(f"the run ended before it said {line!r}")

    def workers(self) -> list[psutil.Process]:
        return [
            child
            for child in psutil.Process(self.process.pid).children()
            if "worker" in " ".join(child.cmdline())
        ]

    def end(self) -> tuple[int, str]:
        """Exit code and the rest of what it said; nothing of the run is alive any more."""
        try:
            _, said = self.process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise
        deadline = monotonic_ns() + DEADLINE_S * NS_PER_S
        while left := self.left():
            assert monotonic_ns() < deadline, f"left behind: {left}"
            time.sleep(0.05)
        return self.process.returncode, said

    def left(self) -> list[int]:
        """Processes with the run's mark in their environment."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.status() != psutil.STATUS_ZOMBIE and (
                    process.environ().get(MARK) == self.mark
                ):
                    found.append(process.pid)
            except psutil.Error:
                continue
        return found

    def records(self) -> list[dict[str, Any]]:
        file = self.run_dir / "records.jsonl"
        # Made with the first record.
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [json.loads(line) for line in lines]

    def events(self, kind: str) -> list[dict[str, Any]]:
        text = (self.run_dir / "events.jsonl").read_text(encoding="utf-8")
        return [event for event in map(json.loads, text.splitlines()) if event["type"] == kind]

    def check_each_ended_once(self) -> None:
        """Trap 35: exactly one terminal event each, and all that were offered."""
        keys = [(one["stage"], one["index"], one.get("turn", 0)) for one in self.records()]
        assert len(keys) == len(set(keys))
        assert len(keys) == sum(event["offered"] for event in self.events("stage_ended"))


def nulls(run_dir: Path, *arguments: str) -> Bench:
    return Bench(run_dir, "--backend", "null", "--null-latency", "20ms", *arguments)


@pytest.mark.parametrize("seed", range(4))
def test_ctrl_c_at_any_moment_ends_with_what_was_measured(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    bench = nulls(tmp_path / "run", "--rate", "200,200", "--max-seconds", "1s", "--workers", "2")
    if rng.random() < 0.75:
        bench.until("stage 1")
    time.sleep(rng.uniform(0.0, 1.5))
    bench.process.send_signal(signal.SIGINT)
    code, said = bench.end()
    print(f"seed {seed}: {said[-300:]}")
    assert "never retrieved" not in said
    # It may have been too early for a handler, or too late to matter.
    assert code in (ExitCode.INTERRUPTED, ExitCode.OK, ExitCode.INVALID_MEASUREMENT, -signal.SIGINT)
    if (tmp_path / "run" / "events.jsonl").exists() and bench.events("stage_ended"):
        bench.check_each_ended_once()
        assert (tmp_path / "run" / "report.json").exists()


def test_a_parent_that_was_stopped_goes_on_and_loses_nothing(tmp_path: Path) -> None:
    """A laptop's lid: the workers wait for nobody, and are not taken for dead afterwards."""
    bench = nulls(tmp_path / "run", "--rate", "100", "--max-seconds", "4s")
    bench.until("stage 1")
    os.kill(bench.process.pid, signal.SIGSTOP)
    time.sleep(1.5)
    os.kill(bench.process.pid, signal.SIGCONT)
    code, said = bench.end()
    assert code in (ExitCode.OK, ExitCode.INVALID_MEASUREMENT), said
    assert not bench.events("worker_died")
    bench.check_each_ended_once()


def test_a_killed_parent_leaves_no_process_and_whole_records(tmp_path: Path) -> None:
    """Trap 34: killing the parent left the workers running."""
    bench = nulls(tmp_path / "run", "--rate", "200", "--max-seconds", "30s", "--workers", "2")
    bench.until("stage 1")
    deadline = monotonic_ns() + DEADLINE_S * NS_PER_S
    records = bench.run_dir / "records.jsonl"
    while not records.exists() or not records.stat().st_size:
        assert monotonic_ns() < deadline
        time.sleep(0.02)
    bench.process.kill()
    bench.end()
    whole = records.read_bytes().rpartition(b"\n")[0]
    assert all(json.loads(line) for line in whole.splitlines())


def test_a_stopped_server_does_not_outlive_the_stage(sim: Any, tmp_path: Path) -> None:
    """Trap 32: a silent server was never stopped."""
    server = sim()
    bench = Bench(
        tmp_path / "run", server.url, "--rate", "50", "--max-seconds", "2s", "--grace", "1s",
        "--input", "4", "--output", "2",
    )  # fmt: skip
    bench.until("stage 1")
    os.kill(server.process.pid, signal.SIGSTOP)
    code, said = bench.end()
    os.kill(server.process.pid, signal.SIGCONT)
    assert code in (ExitCode.OK, ExitCode.INVALID_MEASUREMENT, ExitCode.ALL_REQUESTS_FAILED), said
    (ended,) = bench.events("stage_ended")
    assert ended["reason"] == "max_seconds"
    bench.check_each_ended_once()


@pytest.mark.parametrize(
    ("where", "codes"),
    [
        ("startup", (ExitCode.ERROR, ExitCode.TARGET_UNREACHABLE)),
        ("validate", (ExitCode.ERROR, ExitCode.TARGET_UNREACHABLE)),
        ("resolve", (ExitCode.ALL_REQUESTS_FAILED,)),
        ("shutdown", (ExitCode.OK, ExitCode.INVALID_MEASUREMENT)),
    ],
)
def test_a_backend_that_raises_anywhere_is_named_and_ends_nothing_else(
    tmp_path: Path, where: str, codes: tuple[ExitCode, ...]
) -> None:
    """Trap 33: an exception that nobody saw left the run hanging."""
    bench = Bench(
        tmp_path / "run",
        "--backend-plugin", "faulty_plugin:FaultyBackend", "--backend-option", f"where={where}",
        "--rate", "50", "--max-requests", "20",
    )  # fmt: skip
    code, said = bench.end()
    assert code in codes, said
    kept = (tmp_path / "run" / "workers.log").read_text() if where == "shutdown" else said
    assert f"the backend breaks in {where}" in kept
    if where in ("resolve", "shutdown"):
        bench.check_each_ended_once()
        assert len(bench.records()) == 20


@pytest.mark.parametrize("for_good", [False, True])
def test_inputs_that_fail_end_in_bounded_time_with_their_reason(
    tmp_path: Path, for_good: bool
) -> None:
    bench = Bench(
        tmp_path / "run", "--backend", "null",
        "--data-plugin", "faulty_plugin:FaultyInputs", "--data-option", "at=7",
        "--data-option", f"for_good={str(for_good).lower()}",
        "--rate", "50", "--max-requests", "20",
    )  # fmt: skip
    code, said = bench.end()
    assert code != ExitCode.OK, said
    kept = (tmp_path / "run" / "events.jsonl").read_text()
    assert "there is no conversation 7" in kept + said + json.dumps(bench.records())
    bench.check_each_ended_once()
