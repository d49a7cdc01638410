"""The commands of docs/compare.md and docs/ci.md run as written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["compare.md", "ci.md"])
def test_the_page_s_commands_run_as_written(sim: Any, tmp_path: Path, page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh test\n(.*?)^```", text, re.S | re.M)
    script = "".join(blocks)
    for port in ("8000", "8001"):
        address = f"http://localhost:{port}"
        assert address in script
        script = script.replace(address, sim(ttft=0.01, itl=0.002).url)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=160,
    )
    assert done.returncode == 0, done.stderr
    example = re.search(r"^```python\n(.*?)^```", text, re.S | re.M)
    if example is not None:
        program = [sys.executable, "-c", example[1]]
        ran = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=100)
        assert ran.returncode == 0, ran.stderr
        assert "ttft_p50_s" in ran.stdout
