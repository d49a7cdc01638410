"""`headway demo` replaces its own runs, and nobody else's."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from headway.cli.exit_codes import ExitCode
from headway.core.clock import monotonic_ns, ns_from_s

WAIT_S = 90.0


def headway(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headway.cli.main", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600)


def test_a_demo_leaves_a_run_that_somebody_measured_as_it_is(tmp_path: Path) -> None:
    load = ("--backend", "null", "--rate", "50", "--max-requests", "5", "--no-calibrate", "--quiet")
    headway("bench", *load, "--run-dir", "mine", cwd=tmp_path)
    kept = {file.name: file.read_bytes() for file in (tmp_path / "mine").iterdir()}
    done = headway("demo", "--run-dir", "mine", cwd=tmp_path)
    assert done.returncode == ExitCode.USAGE
    assert "mine holds a run that is no demo" in done.stderr
    assert {file.name: file.read_bytes() for file in (tmp_path / "mine").iterdir()} == kept


def test_a_demo_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    """Each is ended as soon as it has begun: a whole one takes more than a minute."""
    first = begun_demo(tmp_path, other_than=None)
    second = begun_demo(tmp_path, other_than=first)
    assert second != first


def begun_demo(place: Path, other_than: str | None) -> str:
    """Start a demo, and end it when it has begun a run; returns the run's id."""
    demo = subprocess.Popen(
        [sys.executable, "-m", "headway.cli.main", "demo"],
        cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline_ns = monotonic_ns() + ns_from_s(WAIT_S)
    run_id = other_than
    while run_id in (None, other_than):
        assert demo.poll() is None, demo.communicate()
        assert monotonic_ns() < deadline_ns
        time.sleep(0.05)
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            run = json.loads((place / "demo-run" / "run.json").read_text(encoding="utf-8"))
            run_id = run["run_id"]
    demo.send_signal(signal.SIGINT)
    _, said = demo.communicate(timeout=WAIT_S)
    assert demo.returncode == ExitCode.INTERRUPTED, said
    assert isinstance(run_id, str)
    return run_id
