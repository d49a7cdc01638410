"""The GitHub workflow in examples/ci does what it says, run step by step as the runner would."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from headway.cli.exit_codes import ExitCode

WORKFLOW = Path(__file__).parents[2] / "examples" / "ci" / "github-gate.yml"


def commands(**replaced: str) -> str:
    """The workflow's own commands as one script; each step stops at its first failure."""
    steps: list[dict[str, Any]] = yaml.safe_load(WORKFLOW.read_text())["jobs"]["gate"]["steps"]
    script = "\n".join(step["run"] for step in steps if "run" in step)
    for old, new in {"pip install headway": "headway --version", **replaced}.items():
        assert old in script
        script = script.replace(old, new)
    return script


def run(script: str, cwd: Path) -> int:
    environ = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(cwd / "summary.md"),
    }
    with (cwd / "output.log").open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-e", "-c", script], cwd=cwd, env=environ, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    try:
        return process.wait(160)
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # the servers, which a runner would end as well
        process.wait()


def free_ports() -> tuple[str, str]:
    with socket.socket() as one, socket.socket() as other:
        for sock in (one, other):
            sock.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1]), str(other.getsockname()[1])


@pytest.mark.serial
@pytest.mark.parametrize(
    ("new_itl", "codes"),
    [
        ("0.005", {ExitCode.OK, ExitCode.INVALID_MEASUREMENT}),
        ("0.01", {ExitCode.REGRESSION, ExitCode.INVALID_MEASUREMENT}),
    ],
    ids=["equal", "slower"],
)
def test_the_workflow_passes_an_equal_build_and_stops_a_slower_one(
    tmp_path: Path, new_itl: str, codes: set[ExitCode]
) -> None:
    """N8. On a busy machine the measurement may be invalid, and then it must say that."""
    main, new = free_ports()
    script = commands(
        **{"--port 8001 --ttft 0.02 --itl 0.005": f"--port 8001 --ttft 0.02 --itl {new_itl}"}
    )
    script = script.replace("8000", main).replace("8001", new)
    code = run(script, tmp_path)
    assert code in codes, (tmp_path / "output.log").read_text()
    assert "## Headway gate" in (tmp_path / "summary.md").read_text()
    suite = ElementTree.parse(tmp_path / "out" / "gate.xml").getroot()
    assert int(suite.attrib["tests"]) > 10
    names = {
        case.attrib["name"] for case in suite.iter("testcase") if case.find("failure") is not None
    }
    assert ("TPOT p50" in names) == (new_itl == "0.01")
