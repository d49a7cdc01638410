"""What docs/secrets.md and docs/targets.md tell people to type works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["secrets", "targets"])
def test_the_commands_of_the_page_work(server: Any, sim: Any, tmp_path: Path, name: str) -> None:
    target = sim(ttft=0.005, itl=0.001).url
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    shells = re.findall(rf"^```sh {name}\n(.*?)^```", page, re.S | re.M)
    assert len(shells) >= 3
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for block in shells:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.replace("http://127.0.0.1:8000", target)],
            cwd=tmp_path, env={**server.environ, "PATH": path}, text=True, capture_output=True,
            timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        assert "sk-example" not in done.stdout + done.stderr
