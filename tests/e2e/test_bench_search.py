"""The search for the highest rate, and the stop rules of a target that cannot keep up, on a
simulated server whose capacity follows from how it is made (L2, L7)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headway.cli.exit_codes import ExitCode

BENCH = [sys.executable, "-m", "headway.cli.main", "bench"]
# Eight sequences at a time, 20 tokens each, a step of 10 ms + 8 × 0.5 ms: 8 / (20 × 14 ms) = 28.6
# requests a second, a little less for their prompts.
SERVER: dict[str, Any] = {
    "mode": "modelled", "max_batch": 8, "step_base": 0.01, "step_per_sequence": 0.0005,
}  # fmt: skip
CAPACITY_PER_S = 28.6
SHAPE = ("--input", "8", "--output", "20", "--no-calibrate", "--quiet")


def bench(url: str, run_dir: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    command = [*BENCH, url, *SHAPE, "--run-dir", str(run_dir), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    assert (run_dir / "report.json").exists(), done.stderr
    return done.returncode, json.loads((run_dir / "report.json").read_text(encoding="utf-8"))


def search(url: str, run_dir: Path) -> tuple[int, dict[str, Any], dict[str, Any]]:
    code, report = bench(
        url, run_dir,
        "--slo", "ttft p90 < 400ms", "--search-from", "10", "--search-to", "60",
        "--search-precision", "0.8", "--search-confidence", "0.75", "--max-seconds", "2s",
        "--grace", "1s",
    )  # fmt: skip
    return code, report, next(note for note in report["notes"] if note["topic"] == "search")


@pytest.mark.serial
def test_a_search_finds_a_rate_below_the_capacity_and_none_above(sim: Any, tmp_path: Path) -> None:
    """Where something else keeps the client from measuring it has to say that; not three times."""
    server = sim(**SERVER)
    for attempt in range(3):
        run_dir = tmp_path / f"run{attempt}"
        code, report, note = search(server.url, run_dir)
        if "the client itself was the limit" not in note["text"]:
            break
        assert code == ExitCode.INVALID_MEASUREMENT
    answer = note["data"]["answer"]
    assert code == ExitCode.OK, note["text"]
    assert answer["settled"]
    assert 10 <= answer["rate_per_s"] < CAPACITY_PER_S
    assert CAPACITY_PER_S * 0.6 < answer["next_per_s"] <= 60
    assert all(stage["goodput"] is not None for stage in report["stages"])
    page = (run_dir / "report.html").read_text(encoding="utf-8")
    assert f"Search: {answer['rate_per_s']:g} requests/s" in page
    assert "Goodput" in page


def test_an_open_loop_above_the_capacity_is_stopped_and_one_below_is_not(
    sim: Any, tmp_path: Path
) -> None:
    server = sim(**SERVER)
    _, report = bench(
        server.url, tmp_path / "run",
        "--profile", "constant", "--rate", "15,60", "--max-seconds", "12s", "--stop-saturated",
        "--grace", "1s",
    )  # fmt: skip
    below, above = report["stages"]
    assert below["ended_reason"] == "max_seconds"
    assert above["ended_reason"] == "saturated"
    assert "requests in flight grew" in above["ended_detail"]


def test_broken_objectives_end_the_whole_run_where_that_was_asked(sim: Any, tmp_path: Path) -> None:
    server = sim(**SERVER)
    _, report = bench(
        server.url, tmp_path / "run",
        "--profile", "constant", "--rate", "60,70", "--max-seconds", "30s", "--grace", "1s",
        "--objective", "ttft<200ms", "--min-goodput", "90%/5s", "--stop-scope", "run",
    )  # fmt: skip
    (only,) = report["stages"]
    assert only["ended_reason"] == "min_goodput"
    assert "met the objectives within 5 s" in only["ended_detail"]
