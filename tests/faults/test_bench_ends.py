"""How `headway bench` ends when it is hurt: what it says, its exit code, what it leaves (L8).

Beside `test_bench_processes.py`: the server killed, a worker stopped, the disk full, Ctrl-C as a
terminal sends it, to every process at once, and twice.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from headway.cli.exit_codes import ExitCode
from headway.core.clock import NS_PER_S, monotonic_ns

BENCH = [sys.executable, "-m", "headway.cli.main", "bench", "--no-calibrate"]
NULL = ("--backend", "null", "--null-latency", "20ms")
DEADLINE_S = 90.0
MARK = "HEADWAY_TEST_MARK"


class Bench:
    """A run in a session of its own, as a terminal's foreground job is a group of its own."""

    def __init__(
        self, run_dir: Path, *arguments: str, before: Callable[[], None] | None = None
    ) -> None:
        self.run_dir = run_dir
        self.mark = uuid.uuid4().hex
        self.said: list[str] = []
        self.process = subprocess.Popen(
            [*BENCH, "--run-dir", str(run_dir), *arguments],
            env={**os.environ, MARK: self.mark, "PYTHONPATH": str(Path(__file__).parent)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=before,
        )

    def until(self, line: str) -> None:
        """Wait for a line of the plain view."""
        assert self.process.stderr is not None
        for said in self.process.stderr:
            self.said.append(said)
            if said.startswith(line):
                return
        raise AssertionError(f"the run ended before it said {line!r}: {self.said}")

    def until_records(self, number: int) -> None:
        """Wait until so many requests have ended."""
        deadline = monotonic_ns() + DEADLINE_S * NS_PER_S
        while len(self.records()) < number:
            assert self.process.poll() is None, self.said
            assert monotonic_ns() < deadline
            time.sleep(0.02)

    def everybody(self) -> list[psutil.Process]:
        """The run's processes that live, told by their environment."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.status() != psutil.STATUS_ZOMBIE and (
                    process.environ().get(MARK) == self.mark
                ):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def workers(self) -> list[psutil.Process]:
        return [
            child
            for child in psutil.Process(self.process.pid).children()
            if "worker" in " ".join(child.cmdline())
        ]

    def end(self) -> int:
        """The exit code; nothing of the run is alive any more, and all it said is in `said`."""
        try:
            _, rest = self.process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise
        self.said.append(rest)
        deadline = monotonic_ns() + DEADLINE_S * NS_PER_S
        while left := self.everybody():
            assert monotonic_ns() < deadline, f"left behind: {left}"
            time.sleep(0.05)
        return self.process.returncode

    def records(self) -> list[dict[str, Any]]:
        file = self.run_dir / "records.jsonl"
        if not file.exists():
            return []
        whole = file.read_bytes().rpartition(b"\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def events(self, kind: str) -> list[dict[str, Any]]:
        file = self.run_dir / "events.jsonl"
        whole = file.read_bytes().rpartition(b"\n")[0] if file.exists() else b""
        return [event for event in map(json.loads, whole.splitlines()) if event["type"] == kind]

    def check_each_ended_once(self) -> None:
        """Exactly one terminal record for each that was offered, whatever happened."""
        keys = Counter((r["stage"], r["index"], r.get("turn", 0)) for r in self.records())
        assert set(keys.values()) <= {1}
        assert len(keys) == sum(event["offered"] for event in self.events("stage_ended"))


def test_a_server_killed_in_the_middle_is_told_by_errors_and_code(sim: Any, tmp_path: Path) -> None:
    server = sim(ttft=0.005)
    load = ("--profile", "constant", "--rate", "50", "--max-requests", "150", "--grace", "2s")
    bench = Bench(tmp_path / "run", server.url, *load, "--input", "4", "--output", "2")
    bench.until("stage 1")
    bench.until_records(20)
    server.process.kill()
    assert bench.end() == ExitCode.INVALID_MEASUREMENT
    bench.check_each_ended_once()
    records = bench.records()
    assert len(records) == 150
    failed = [record["failure"]["category"] for record in records if "failure" in record]
    assert len(failed) > 50
    assert set(failed) <= {"connect", "disconnected"}
    report = json.loads((bench.run_dir / "report.json").read_text())
    stage = report["stages"][0]
    assert "ERRORS" in stage["verdict"]["words"]
    assert stage["counts"]["errored"] == len(failed), "none is left out of the measured window"


def test_a_server_that_was_never_there_again_fails_every_request_of_a_stage(
    sim: Any, tmp_path: Path
) -> None:
    """Killed before the first request: nothing completed, and the code says so."""
    server = sim(fault="stall:at=0")
    load = ("--streams", "4", "--max-requests", "40", "--output", "2")
    file = tmp_path / "rows.jsonl"
    file.write_text('{"prompt": "one"}\n' * 40)
    bench = Bench(tmp_path / "run", server.url, *load, "--data", str(file))
    bench.until("stage 1")
    server.process.kill()
    assert bench.end() == ExitCode.ALL_REQUESTS_FAILED
    bench.check_each_ended_once()
    assert {record["status"] for record in bench.records()} == {"errored"}
    assert "not one request completed" in "".join(bench.said)


def test_a_stopped_worker_is_given_up_and_the_others_go_on(tmp_path: Path) -> None:
    """Found by its silence, with the limits that the command has; its requests are told lost."""
    bench = Bench(
        tmp_path / "run", *NULL, "--profile", "constant", "--rate", "100",
        "--max-requests", "1500", "--workers", "2",
    )  # fmt: skip
    bench.until("stage 1")
    bench.until_records(50)
    stopped = bench.workers()[0]
    stopped.suspend()
    assert bench.end() == ExitCode.INVALID_MEASUREMENT
    bench.check_each_ended_once()
    records = bench.records()
    assert sorted(record["index"] for record in records) == list(range(1500))
    (died,) = bench.events("worker_died")
    assert died["cause"].startswith("silent for")
    lost = [record for record in records if record["status"] == "errored"]
    assert {record["failure"]["category"] for record in lost} == {"worker_lost"}
    assert len(lost) == died["lost_requests"]
    assert len([r for r in records if r["status"] == "completed"]) > 500
    assert not stopped.is_running()


def test_a_full_disk_is_said_and_ends_with_its_code(tmp_path: Path) -> None:
    """The table of what was kept looks like any other: the sentence must stand beside it."""
    limit = 60_000
    bench = Bench(
        tmp_path / "run", *NULL, "--streams", "8", "--max-seconds", "60s",
        before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )  # fmt: skip
    assert bench.end() == ExitCode.ERROR
    said = "".join(bench.said)
    assert "Error: the run could not go on: cannot write" in said
    assert "records.jsonl" in said
    records = bench.records()
    keys = {(record["stage"], record["index"]) for record in records}
    assert len(keys) == len(records) > 50
    assert f"Records kept in {bench.run_dir}: {len(records)}." in said
    assert f"headway bench --resume {bench.run_dir} " in said


@pytest.mark.parametrize("output", [(), ("--json",)])
def test_a_disk_too_full_for_the_reports_does_not_hide_why_the_run_ended(
    tmp_path: Path, output: tuple[str, ...]
) -> None:
    """Only the report was named: neither that the run had broken off, nor what is kept of it."""
    bench = Bench(
        tmp_path / "run", *NULL, "--streams", "8", "--max-seconds", "60s", *output,
        before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, 8_000)),
    )  # fmt: skip
    assert bench.end() == ExitCode.ERROR
    said = "".join(bench.said)
    assert "Error: the run could not go on: cannot write" in said
    assert f"Error: cannot write {bench.run_dir / 'report.json'}" in said
    assert f"Records kept in {bench.run_dir}: {len(bench.records())}." in said


def test_a_disk_too_full_for_the_reports_of_a_whole_run_says_how_to_have_them(
    tmp_path: Path,
) -> None:
    bench = Bench(
        tmp_path / "run", *NULL, "--streams", "2", "--max-requests", "10",
        before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, 8_000)),
    )  # fmt: skip
    assert bench.end() == ExitCode.ERROR
    said = "".join(bench.said)
    assert f"Records kept in {bench.run_dir}: 10." in said
    assert "--resume" not in said, "there is nothing to go on with"
    later = subprocess.run(
        [sys.executable, "-m", "headway.cli.main", "report", str(bench.run_dir)],
        capture_output=True, text=True, timeout=DEADLINE_S,
    )  # fmt: skip
    assert later.returncode == ExitCode.OK, later.stderr


def test_a_disk_that_is_full_from_the_start_leaves_nothing_running(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path / "run", *NULL, "--streams", "2", "--max-seconds", "60s",
        before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)),
    )  # fmt: skip
    assert bench.end() == ExitCode.ERROR
    assert "run.json: File too large" in "".join(bench.said)


@pytest.mark.parametrize("seed", range(5))
def test_ctrl_c_in_a_terminal_keeps_all_that_was_measured(tmp_path: Path, seed: int) -> None:
    """A terminal sends it to every process of the run; the workers leave it to the parent."""
    bench = Bench(
        tmp_path / "run", *NULL, "--rate", "200,200", "--max-seconds", "20s", "--workers", "2",
        "--seed", str(seed),
    )  # fmt: skip
    bench.until("stage 1")
    bench.until_records(random.Random(seed).choice([1, 20, 100, 300, 600]))
    os.killpg(bench.process.pid, signal.SIGINT)
    assert bench.end() == ExitCode.INTERRUPTED
    assert bench.events("worker_died") == []
    (ended,) = bench.events("stage_ended")
    assert ended["reason"] == "interrupted"
    bench.check_each_ended_once()
    report = json.loads((bench.run_dir / "report.json").read_text(encoding="utf-8"))
    (stage,) = report["stages"]
    assert stage["partial"]
    assert stage["counts"]["recorded"] == len(bench.records())


@pytest.mark.parametrize("seed", range(3))
def test_ctrl_c_twice_does_not_wait_for_requests_in_flight(
    sim: Any, tmp_path: Path, seed: int
) -> None:
    """The target never answers and the grace period is an hour: only the second one ends it."""
    server = sim(fault="stall:at=0")
    file = tmp_path / "rows.jsonl"
    file.write_text('{"prompt": "one"}\n' * 200)
    bench = Bench(
        tmp_path / "run", server.url, "--streams", "8", "--max-seconds", "3600s",
        "--grace", "3600s", "--data", str(file), "--workers", "2",
    )  # fmt: skip
    bench.until("stage 1")
    os.killpg(bench.process.pid, signal.SIGINT)
    bench.until("Stopping")
    if seed:
        os.killpg(bench.process.pid, signal.SIGINT)
    else:
        bench.process.send_signal(signal.SIGTERM)
    assert bench.end() == ExitCode.INTERRUPTED
    bench.check_each_ended_once()
    assert {record["status"] for record in bench.records()} <= {"cancelled"}
    assert (bench.run_dir / "report.json").exists()


@pytest.mark.parametrize("where", ["startup", "validate"])
def test_a_backend_that_breaks_before_the_load_starts_nothing(tmp_path: Path, where: str) -> None:
    bench = Bench(
        tmp_path / "run",
        "--backend-plugin", "faulty_plugin:FaultyBackend", "--backend-option", f"where={where}",
        "--rate", "50", "--max-requests", "20", "--workers", "2",
    )  # fmt: skip
    assert bench.end() == ExitCode.ERROR
    said = "".join(bench.said)
    assert f"the backend breaks in {where}" in said
    assert bench.records() == []
    assert not (bench.run_dir / "run.json").exists()


def test_inputs_that_fail_once_cost_one_request(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path / "run", *NULL, "--data-plugin", "faulty_plugin:FaultyInputs",
        "--data-option", "at=7", "--profile", "constant", "--rate", "50", "--max-requests", "20",
    )  # fmt: skip
    assert bench.end() == ExitCode.INVALID_MEASUREMENT
    bench.check_each_ended_once()
    records = {record["index"]: record for record in bench.records()}
    assert sorted(records) == list(range(20))
    assert records.pop(7)["failure"]["message"].endswith("there is no conversation 7")
    assert {record["status"] for record in records.values()} == {"completed"}


def test_inputs_that_fail_from_the_start_are_an_error_before_anything_is_sent(
    tmp_path: Path,
) -> None:
    bench = Bench(
        tmp_path / "run", *NULL, "--data-plugin", "faulty_plugin:FaultyInputs",
        "--data-option", "at=0", "--rate", "50", "--max-requests", "20",
    )  # fmt: skip
    assert bench.end() in (ExitCode.ERROR, ExitCode.USAGE)
    assert "there is no conversation 0" in "".join(bench.said)
    assert bench.records() == []


@pytest.mark.parametrize("profile", ["constant", "concurrent"])
def test_inputs_that_take_long_to_find_their_end_are_asked_for_it_once(
    tmp_path: Path, profile: str
) -> None:
    """Each of the arrivals behind the end asked again, on the loop of the worker and the parent."""
    rate = ("--rate", "50") if profile == "constant" else ("--streams", "4")
    bench = Bench(
        tmp_path / "run", *NULL, "--data-plugin", "faulty_plugin:SlowInputs",
        "--data-option", "count=20", "--data-option", "end_s=1",
        "--profile", profile, *rate, "--max-seconds", "30s",
    )  # fmt: skip
    assert bench.end() in (ExitCode.OK, ExitCode.INVALID_MEASUREMENT)
    bench.check_each_ended_once()
    assert len(bench.records()) == 20
    assert {record["status"] for record in bench.records()} == {"completed"}


def test_inputs_slower_than_their_schedule_end_with_the_stage(tmp_path: Path) -> None:
    """The worker made content without end: it reported nothing, and the stage did not end."""
    bench = Bench(
        tmp_path / "run", *NULL, "--data-plugin", "faulty_plugin:SlowInputs",
        "--data-option", "slow_s=0.05",
        "--profile", "constant", "--rate", "200", "--max-seconds", "3s",
    )  # fmt: skip
    assert bench.end() == ExitCode.INVALID_MEASUREMENT
    bench.check_each_ended_once()
    statuses = {record["status"] for record in bench.records()}
    assert "completed" in statuses, "what could be sent was"
    assert len(bench.records()) == 600, "and every arrival of the schedule has its record"


def test_inputs_that_never_return_end_the_run_with_the_worker_lost(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path / "run", *NULL, "--data-plugin", "faulty_plugin:SlowInputs",
        "--data-option", "count=20", "--data-option", "end_s=3600",
        "--profile", "constant", "--rate", "50", "--max-seconds", "2s", "--grace", "1s",
    )  # fmt: skip
    assert bench.end() in (ExitCode.INVALID_MEASUREMENT, ExitCode.ALL_REQUESTS_FAILED)
    bench.check_each_ended_once()
    report = json.loads((bench.run_dir / "report.json").read_text())
    assert "WORKER_LOST" in report["stages"][0]["verdict"]["words"]


def test_inputs_that_hang_before_the_start_are_left_by_ctrl_c(tmp_path: Path) -> None:
    """The process waited at its end for the thread that would never return."""
    bench = Bench(
        tmp_path / "run", *NULL, "--data-plugin", "faulty_plugin:SlowInputs",
        "--data-option", "slow_s=3600", "--rate", "50", "--max-requests", "20",
    )  # fmt: skip
    deadline = monotonic_ns() + DEADLINE_S * NS_PER_S
    while not bench.run_dir.exists():  # Made when Ctrl-C is heard already.
        assert monotonic_ns() < deadline
        time.sleep(0.01)
    bench.process.send_signal(signal.SIGINT)
    assert bench.end() == ExitCode.INTERRUPTED
    assert list(tmp_path.iterdir()) == []


def interrupted_at_the_start(run_dir: Path, *arguments: str) -> str:
    """What a run says that Ctrl-C ends while its target, which never answers, is asked."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(DEADLINE_S)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        bench = Bench(run_dir, url, "--rate", "9", *arguments)
        asked, _ = listener.accept()
        with asked:
            os.killpg(bench.process.pid, signal.SIGINT)
            assert bench.end() == ExitCode.INTERRUPTED
    return "".join(bench.said)


def test_ctrl_c_before_the_first_stage_leaves_nothing_that_the_command_made(
    tmp_path: Path,
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"prompt": "one"}\n' * 200)
    run_dir = tmp_path / "kept" / "here" / "run"
    said = interrupted_at_the_start(run_dir, "--data", str(file))
    assert "nothing was measured" in said
    assert list(tmp_path.iterdir()) == [file]


def test_ctrl_c_before_the_first_stage_leaves_what_was_there_before(tmp_path: Path) -> None:
    mine = tmp_path / "run" / "notes.txt"
    mine.parent.mkdir()
    mine.write_text("of the user")
    interrupted_at_the_start(mine.parent)
    assert list(mine.parent.iterdir()) == [mine]
    assert mine.read_text() == "of the user"


def test_a_target_that_is_not_there_leaves_no_directory(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "runs" / "one", "http://127.0.0.1:9", "--rate", "9")
    assert bench.end() == ExitCode.TARGET_UNREACHABLE
    assert list(tmp_path.iterdir()) == []
