"""`headway demo` replaces its own runs, and nobody else's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from headway.cli.exit_codes import ExitCode


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
    for _ in range(2):
        done = headway("demo", cwd=tmp_path)
        assert done.returncode == ExitCode.OK, done.stderr
    report = json.loads((tmp_path / "demo-run" / "report.json").read_text(encoding="utf-8"))
    assert [stage["name"] for stage in report["stages"]][:2] == ["synchronous", "saturation"]
    assert report["complete"]
