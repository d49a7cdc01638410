"""`headway chaos` as docs/chaos.md has it: a short run, and a plan that is replayed (N11)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "chaos.md"

pytestmark = pytest.mark.timeout(400)


def shell(commands: str, directory: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=directory, env={**os.environ, "PATH": path, "TMPDIR": str(directory)},
        capture_output=True, text=True, timeout=380, check=False,
    )  # fmt: skip
    # What it found, and how to see it again, is what a failure of this test must show.
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done


def blocks() -> list[str]:
    return re.findall(r"^```sh chaos\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)


def test_a_server_that_is_killed_stopped_and_restarted_loses_nothing(tmp_path: Path) -> None:
    said = shell(blocks()[0], tmp_path)
    assert "all accounted for (seed 12" in said.stdout
    assert re.search(r"^ended succeeded +[1-9]", said.stdout, re.M), "it did something"
    for deed in ("kill everything", "kill process", "stop process", "terminate"):
        assert deed in said.stderr
    assert not list(tmp_path.glob("headway-chaos-*")), "its directory is gone"


def test_a_plan_can_be_printed_shortened_and_replayed(tmp_path: Path) -> None:
    said = json.loads(shell(blocks()[1], tmp_path).stdout)
    assert said["findings"] == []
    assert set(said["flaws"].values()) == {0}
    assert len((tmp_path / "plan.jsonl").read_text().splitlines()) > 20
