"""Each word of the verdict, provoked on real processes, beside a near miss without it (N1).

The words are constants of a pure function, which `tests/unit/report/test_verdict.py` holds to its
limits; here is that the facts reach it: from a busy core, a warm cache, a server that slows down, a
worker that died. A near miss is asked for its own word only: on a machine that is busy with
something else another one may hold, and is right to.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from headway.cli.exit_codes import ExitCode

BENCH = [sys.executable, "-m", "headway.cli.main", "bench", "--quiet"]
DEADLINE_S = 150

# Eight sequences at a time, 20 tokens each, a step of 10 ms + 8 × 0.5 ms: 28.6 requests a second.
MODELLED: dict[str, Any] = {
    "mode": "modelled", "max_batch": 8, "step_base": 0.01, "step_per_sequence": 0.0005,
}  # fmt: skip

CALLABLES = """
import asyncio, time

async def burn(prompt):
    # Computes on the worker's own event loop, as a tokenizer there would (trap 43).
    until = time.thread_time() + 0.03
    while time.thread_time() < until:
        pass
    return prompt

async def rest(prompt):
    await asyncio.sleep(0.2)
    return prompt
"""


def bench(run_dir: Path, *arguments: str, env: dict[str, str] | None = None) -> tuple[int, Any]:
    done = subprocess.run(
        [*BENCH, "--run-dir", str(run_dir), *arguments],
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert (run_dir / "report.json").exists(), done.stderr
    (stage,) = json.loads((run_dir / "report.json").read_text(encoding="utf-8"))["stages"]
    words = stage["verdict"]["words"]
    # The exit code and standard error say the same as the report.
    assert (done.returncode == ExitCode.OK) == (words == []), (done.returncode, words)
    assert all(f": {word}: " in done.stderr for word in words)
    return done.returncode, stage


def words(stage: Any) -> list[str]:
    said: list[str] = stage["verdict"]["words"]
    return said


def check(stage: Any, measure: str) -> dict[str, Any]:
    (found,) = [one for one in stage["verdict"]["checks"] if one["measure"] == measure]
    return dict(found)


# --- CLIENT_BOUND --------------------------------------------------------------------------------


@pytest.fixture
def callables(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "verdict_callables.py").write_text(CALLABLES, encoding="utf-8")
    return {"PYTHONPATH": str(tmp_path)}


def test_a_busy_client_core_is_client_bound(tmp_path: Path, callables: dict[str, str]) -> None:
    code, stage = bench(
        tmp_path / "run", "--no-calibrate", "--backend", "python",
        "--function", "verdict_callables:burn", "--streams", "4", "--max-seconds", "10s",
        env=callables,
    )  # fmt: skip
    assert code == ExitCode.INVALID_MEASUREMENT
    assert words(stage)[0] == "CLIENT_BOUND"
    assert check(stage, "median of the worst event-loop delays in seconds")["failed"]


def test_a_client_that_only_waits_is_not(tmp_path: Path, callables: dict[str, str]) -> None:
    """As many requests a second as above, and each takes as long."""
    _, stage = bench(
        tmp_path / "run", "--no-calibrate", "--backend", "python",
        "--function", "verdict_callables:rest", "--streams", "6", "--max-seconds", "10s",
        env=callables,
    )  # fmt: skip
    busiest = check(stage, "CPU share of the busiest worker")
    assert busiest["value"] is not None
    assert busiest["value"] < 0.4
    assert not busiest["failed"]


def test_a_floor_near_the_measured_times_is_client_bound_and_one_far_below_is_not(
    sim: Any, tmp_path: Path
) -> None:
    """N3: the same client, calibrated, towards a server that takes no time and one that does."""
    load = ("--streams", "2", "--max-requests", "200", "--input", "8", "--output", "4")
    code, at_once = bench(tmp_path / "at-once", sim().url, *load)
    assert code == ExitCode.INVALID_MEASUREMENT
    assert "CLIENT_BOUND" in words(at_once)
    measure = "client's floor as a share of the median"
    assert check(at_once, measure)["value"] > 0.1
    _, slow = bench(tmp_path / "slow", sim(ttft=0.5).url, *load)
    assert 0 < check(slow, measure)["value"] < 0.1
    assert not check(slow, measure)["failed"]


# --- ERRORS --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("every", "is_said"), [(50, True), (100, False)])
def test_more_than_one_failure_in_a_hundred_is_errors(
    sim: Any, tmp_path: Path, every: int, is_said: bool
) -> None:
    server = sim(ttft=0.01, fault=f"error:status=503,every={every}")
    _, stage = bench(
        tmp_path / "run", server.url, "--no-calibrate", "--streams", "4", "--max-requests", "300",
        "--input", "8", "--output", "4",
    )  # fmt: skip
    assert stage["counts"]["errored"] == 300 // every
    assert ("ERRORS" in words(stage)) is is_said


# --- TOO_FEW_SAMPLES -----------------------------------------------------------------------------


@pytest.mark.parametrize(("requests", "is_said"), [(99, True), (100, False)])
def test_fewer_than_a_hundred_requests_are_too_few(
    sim: Any, tmp_path: Path, requests: int, is_said: bool
) -> None:
    server = sim(ttft=0.01)
    _, stage = bench(
        tmp_path / "run", server.url, "--no-calibrate", "--streams", "4",
        "--max-requests", str(requests), "--input", "8", "--output", "4",
    )  # fmt: skip
    assert stage["counts"]["completed"] == requests
    assert ("TOO_FEW_SAMPLES" in words(stage)) is is_said


# --- NOT_STEADY ----------------------------------------------------------------------------------


def at_rate(url: str, run_dir: Path, rate: int) -> Any:
    _, stage = bench(
        run_dir, url, "--no-calibrate", "--profile", "constant", "--rate", str(rate),
        "--max-seconds", "12s", "--grace", "30s", "--input", "8", "--output", "20",
    )  # fmt: skip
    return stage


def test_a_server_that_falls_behind_is_not_steady(sim: Any, tmp_path: Path) -> None:
    """Its capacity follows from how it is made: above it waits rise for as long as one looks."""
    stage = at_rate(sim(**MODELLED).url, tmp_path / "run", 45)
    assert "NOT_STEADY" in words(stage)
    assert check(stage, "change of median TTFT")["value"] > 0.2
    assert check(stage, "change of mean requests in flight")["value"] > 0.2


def test_a_server_below_its_capacity_is_steady(sim: Any, tmp_path: Path) -> None:
    """Something else on the host may slow the server down for a while; not three times."""
    server = sim(**MODELLED)
    assert any(
        "NOT_STEADY" not in words(at_rate(server.url, tmp_path / f"run{number}", 12))
        for number in range(3)
    )


def test_a_ramp_is_asked_for_and_is_not_held_against_the_server(sim: Any, tmp_path: Path) -> None:
    _, stage = bench(
        tmp_path / "run", sim(**MODELLED).url, "--no-calibrate", "--profile", "ramp",
        "--ramp-from", "5", "--ramp-to", "45", "--ramp-duration", "12s", "--grace", "30s",
        "--input", "8", "--output", "20",
    )  # fmt: skip
    assert "NOT_STEADY" not in words(stage)


# --- CACHE_WARM ----------------------------------------------------------------------------------


def test_prompts_that_the_server_has_seen_before_are_a_warm_cache(sim: Any, tmp_path: Path) -> None:
    """Trap 50: the same seed a second time gave +86% throughput, and nothing said why."""
    server = sim(mode="modelled", step_base=0.002)
    load = (
        server.url, "--no-calibrate", "--streams", "4", "--max-requests", "120",
        "--input", "64", "--output", "4",
    )  # fmt: skip
    _, first = bench(tmp_path / "first", *load, "--seed", "1")
    assert "CACHE_WARM" not in words(first)
    assert first["tokens"]["cached_share"] < 0.1
    code, again = bench(tmp_path / "again", *load, "--seed", "1")
    assert "CACHE_WARM" in words(again)
    assert code == ExitCode.INVALID_MEASUREMENT
    assert again["tokens"]["cached_share"] > 0.5
    _, other = bench(tmp_path / "other", *load, "--seed", "2")
    assert "CACHE_WARM" not in words(other)


# --- SCHEDULE_MISSED -----------------------------------------------------------------------------


@pytest.mark.parametrize(("cap", "is_said"), [("2", True), (None, False)])
def test_a_cap_below_the_load_misses_the_schedule(
    sim: Any, tmp_path: Path, cap: str | None, is_said: bool
) -> None:
    """20/s of 200 ms each need four at a time: two can carry half of it (trap 27)."""
    server = sim(ttft=0.2)
    _, stage = bench(
        tmp_path / "run", server.url, "--no-calibrate", "--profile", "constant", "--rate", "20",
        "--max-requests", "120", *(["--cap", cap] if cap else []), "--input", "8", "--output", "2",
    )  # fmt: skip
    assert stage["counts"]["recorded"] == 120
    if is_said:
        assert "SCHEDULE_MISSED" in words(stage)
    else:
        # 20 ms, a tenth of the TTFT, are tolerated; a busy host may pass that, a cap's wait never.
        assert check(stage, "lateness p99 in seconds")["value"] < 1.0


# --- WORKER_LOST ---------------------------------------------------------------------------------


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_worker_that_died_is_said_and_one_that_paused_is_not(
    sim: Any, tmp_path: Path, is_killed: bool
) -> None:
    server = sim(ttft=0.05)
    run_dir = tmp_path / "run"
    running = subprocess.Popen(
        [
            *BENCH, server.url, "--run-dir", str(run_dir), "--no-calibrate", "--streams", "8",
            "--max-requests", "1000", "--workers", "2", "--input", "8", "--output", "2",
        ],
        stderr=subprocess.PIPE,
    )  # fmt: skip
    server.truth(at_least=40, timeout_s=60)
    worker = next(
        child
        for child in psutil.Process(running.pid).children()
        if "worker" in " ".join(child.cmdline())
    )
    worker.send_signal(signal.SIGKILL if is_killed else signal.SIGSTOP)
    if not is_killed:
        # The other worker's requests go on meanwhile.
        server.truth(at_least=60, timeout_s=60)
        worker.send_signal(signal.SIGCONT)
    running.communicate(timeout=DEADLINE_S)
    (stage,) = json.loads((run_dir / "report.json").read_text(encoding="utf-8"))["stages"]
    assert stage["counts"]["recorded"] == 1000
    assert ("WORKER_LOST" in words(stage)) is is_killed
    assert words(stage)[:1] == ["WORKER_LOST"] or not is_killed
