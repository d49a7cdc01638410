"""The measurements of the job engine run, and their driver understands what they print."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "benchmarks" / "jobs"


@pytest.fixture(scope="module")
def budgets() -> ModuleType:
    spec = importlib.util.spec_from_file_location("jobs_budgets", SCRIPTS / "budgets.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_part_measures_a_real_server_and_gives_its_verdict(budgets: ModuleType) -> None:
    """P17, with few lines: whether the budget holds on a busy machine is not asked here."""
    printed = subprocess.run(
        [sys.executable, str(SCRIPTS / "following.py"), "--lines", "10"],
        capture_output=True, text=True, timeout=120, check=True, cwd=ROOT,
    ).stdout  # fmt: skip
    assert "benchmarks/jobs/following.py --lines 10" in printed
    (row,) = budgets.rows(("P17",), printed.splitlines())
    assert row.startswith("| P17 | p50 ")
    assert row.endswith((" met |", " MISSED |"))


def test_what_failed_is_not_called_measured(budgets: ModuleType) -> None:
    assert budgets.rows(("P11",), ["rates.py failed with exit code 1"]) == [
        "| P11 | rates.py failed with exit code 1 | not measured |"
    ]


def test_every_budget_of_the_job_engine_has_its_command(budgets: ModuleType) -> None:
    assert [name for names in budgets.PARTS for name in names] == [
        f"P{number}" for number in range(10, 19)
    ]
    assert all((SCRIPTS / part[0]).exists() for part in budgets.PARTS.values())
