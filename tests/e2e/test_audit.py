"""N5: the audit fails on a finding, and says so when it could not ask."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("pip_audit")

AUDIT = Path(__file__).parents[2] / ".ci" / "audit"


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("audit", str(AUDIT))
    spec = importlib.util.spec_from_loader("audit", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_a_known_advisory_fails_and_is_named(
    audit: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    finding = {"id": "X-2026-1", "fix_versions": ["2.0"]}
    answer = {
        "dependencies": [
            {"name": "good", "version": "1", "vulns": []},
            {"name": "bad", "version": "1", "vulns": [finding]},
            {"name": "odd", "skip_reason": "not found"},
        ]
    }
    assert audit.verdict(answer, 3) == 1
    assert "bad 1: X-2026-1, fixed in 2.0" in capsys.readouterr().out
    assert audit.verdict({"dependencies": answer["dependencies"][:1]}, 1) == 0


def test_it_asks_for_all_that_is_installed_and_nothing_of_the_developers(
    audit: ModuleType,
) -> None:
    found = audit.closure("headway", audit.EXTRAS)
    assert {"fastapi", "starlette", "uvicorn", "httpx", "pydantic-core"} <= found.keys()
    assert "pytest" not in found


def test_without_the_network_it_says_that_it_was_skipped() -> None:
    nowhere = "http://127.0.0.1:9"
    told = subprocess.run(
        [sys.executable, str(AUDIT)], capture_output=True, text=True, timeout=150, check=False,
        env={"HTTPS_PROXY": nowhere, "HTTP_PROXY": nowhere, "PATH": "/usr/bin:/bin",
             "HOME": "/nonexistent"},
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("audit skipped: ")
