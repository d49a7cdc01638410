"""What the documents tell people to type works, and what they list is what there is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway.cli.exit_codes import ExitCode

ROOT = Path(__file__).parents[2]
USER_GUIDE = ROOT / "docs" / "user-guide.md"
DOCUMENTED_ADDRESS = "http://localhost:8000"


def commands_to_run(page: Path) -> list[str]:
    """The commands of a page's blocks that are fenced as ```sh test."""
    blocks = re.findall(r"^```sh test\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


@pytest.fixture
def shell(tmp_path: Path) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Runs a command line as a reader would, with `headway` on the PATH."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            shell=True,
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=100,
        )

    return run


def test_the_user_guide_s_commands_run_as_written(sim: Any, shell: Any) -> None:
    server = sim()
    commands = commands_to_run(USER_GUIDE)
    assert len(commands) >= 4
    for command in commands:
        done = shell(command.replace(DOCUMENTED_ADDRESS, server.url))
        # A verdict depends on how busy the machine is; everything else has to be right.
        assert done.returncode in (ExitCode.OK, ExitCode.INVALID_MEASUREMENT), (
            f"{command}\n{done.stdout}\n{done.stderr}"
        )


def test_the_user_guide_s_python_example_prints_a_number(sim: Any, shell: Any) -> None:
    server = sim()
    example = re.search(
        r"^```python\n(.*?)^```", USER_GUIDE.read_text(encoding="utf-8"), re.S | re.M
    )
    assert example is not None
    program = example[1].replace(DOCUMENTED_ADDRESS, server.url)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=shell("pwd").stdout.strip(),
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) > 0


def test_the_user_guide_lists_every_exit_code_by_its_name() -> None:
    rows = re.findall(r"^\| (\d+) \| ([A-Z_]+) \|", USER_GUIDE.read_text(encoding="utf-8"), re.M)
    assert {name: int(code) for code, name in rows} == {code.name: code.value for code in ExitCode}


def test_every_link_between_the_documents_leads_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert not broken


def test_the_places_to_open_for_a_change_exist() -> None:
    table = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## To change X")[2]
    places = re.findall(r"`([a-z_]+/[a-z_/.]*)`", table)
    assert len(places) > 15
    homes = (ROOT / "src" / "headway", ROOT)
    assert [place for place in places if not any((home / place).exists() for home in homes)] == []
