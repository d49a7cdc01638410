"""One's own backend, arrivals and inputs, as docs/plugins.md shows them (L9)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headway.cli.exit_codes import ExitCode

PAGE = Path(__file__).parents[2] / "docs" / "plugins.md"
BENCH = [sys.executable, "-m", "headway.cli.main", "bench", "--no-calibrate", "--quiet"]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The page's example module and its entry points, as an installed package would have them."""
    text = PAGE.read_text(encoding="utf-8")
    (module,) = re.findall(r"^```python\n(.*?)^```", text, re.S | re.M)
    (points,) = re.findall(r"^```toml\n(.*?)^```", text, re.S | re.M)
    (tmp_path / "echo_plugin.py").write_text(module, encoding="utf-8")
    info = tmp_path / "echo_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: echo-plugin\nVersion: 1.0\n")
    groups = re.findall(r'^\[project\.entry-points\."(.*?)"\]\n(\w+) = "(.*?)"$', points, re.M)
    assert len(groups) == 3
    (info / "entry_points.txt").write_text(
        "".join(f"[{group}]\n{name} = {value}\n" for group, name, value in groups)
    )
    return tmp_path


def bench(package: Path, *arguments: str) -> tuple[int, str, Path]:
    run_dir = package / "run"
    done = subprocess.run(
        [*BENCH, "--run-dir", str(run_dir), *arguments],
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr, run_dir


def test_a_backend_arrivals_and_inputs_of_ones_own_make_a_run(package: Path) -> None:
    code, said, run_dir = bench(
        package,
        "--backend-plugin", "echo", "--backend-option", "delay_s=0.001",
        "--arrivals-plugin", "pairs", "--arrivals-option", "every_s=0.01",
        "--data-plugin", "numbers", "--data-option", "count=30", "--workers", "2",
        "--capture-text",
    )  # fmt: skip
    assert code in (ExitCode.OK, ExitCode.INVALID_MEASUREMENT), said
    lines = (run_dir / "records.jsonl").read_text(encoding="utf-8").splitlines()
    records: list[dict[str, Any]] = sorted(map(json.loads, lines), key=lambda one: one["index"])
    assert [one["partial_text"] for one in records] == [f"number {i}" for i in range(30)]
    # Two at a time, every 10 ms: the arrival process's times, whatever the number of workers.
    assert [one["due_ns"] for one in records] == [i // 2 * 10_000_000 for i in range(30)]
    run = json.loads((run_dir / "run.json").read_text(encoding="utf-8"))
    assert run["spec"]["inputs"] == {"kind": "plugin", "name": "numbers", "options": {"count": 30}}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--backend-plugin", "ehco"), "offers 'ehco' in the entry points headway.backends (echo)"),
        (("--backend-plugin", "no_such_module:Thing"), "cannot import no_such_module"),
        (("--backend-plugin", "echo", "--data-plugin", "json:dumps"), "json:dumps"),
    ],
)
def test_what_is_no_plugin_is_refused_with_what_there_is(
    package: Path, arguments: tuple[str, ...], said: str
) -> None:
    code, text, _ = bench(package, *arguments, "--max-requests", "1")
    assert code in (ExitCode.USAGE, ExitCode.ERROR), text
    assert said in text
