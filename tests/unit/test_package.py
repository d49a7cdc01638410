"""What the package promises as a whole: light to install, light to start, no pickle."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {"fastapi", "sqlalchemy", "numpy", "pydantic", "aiohttp", "httpx", "rich", "uvloop"}
NEVER_IN_THE_BASE = {"numpy", "pandas", "torch", "transformers", "scipy", "pyarrow", "tokenizers"}


def modules_after(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after `statement`."""
    program = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stdout.split())


def test_importing_headway_loads_nothing_heavy_and_does_nothing() -> None:
    assert not modules_after("import headway") & (HEAVY | NEVER_IN_THE_BASE)


def test_listing_the_commands_loads_nothing_heavy() -> None:
    """Trap 52: five seconds to start."""
    help_text = (
        "from headway.cli.commands import headway\nheadway(['--help'], standalone_mode=False)"
    )
    assert not modules_after(f"import io, sys\nsys.stdout = io.StringIO()\n{help_text}\n"
                             "sys.stdout = sys.__stdout__") & HEAVY  # fmt: skip


def test_the_base_install_has_none_of_the_heavy_libraries() -> None:
    """Trap 52: 1.2 GB of mandatory dependencies."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {line.partition(">")[0].partition("[")[0].strip() for line in project["dependencies"]}
    assert not names & NEVER_IN_THE_BASE


def test_every_base_dependency_has_its_reason_in_the_decision_record() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    record = (ROOT / "docs/decisions/0002-dependencies.md").read_text(encoding="utf-8").lower()
    names = {line.partition(">")[0].partition("[")[0].strip() for line in project["dependencies"]}
    assert {name for name in names if name not in record} == set()


@pytest.mark.parametrize("package", ["load", "wire", "backends", "records", "sim"])
def test_the_load_half_s_workers_load_no_web_framework_and_no_database(package: str) -> None:
    assert not modules_after(f"import headway.{package}") & {"fastapi", "sqlalchemy", "numpy"}


def test_the_server_starts_its_worker_before_it_loads_the_web_framework() -> None:
    """P16: both load at once then; an HTTP client is loaded by whoever asks a target."""
    assert not modules_after("import headway.api.server") & {"fastapi", "httpx", "sqlalchemy"}
    assert not modules_after("import headway.dispatch.worker_main") & {"fastapi", "httpx"}


def imported_modules(file: Path) -> set[str]:
    """The top-level modules that a source file imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


def test_nothing_pickles() -> None:
    """Trap 13: inputs, results and errors were pickles in the database and on the wire."""
    picklers = {"pickle", "dill", "cloudpickle", "marshal", "shelve", "multiprocessing"}
    sources = list((ROOT / "src").rglob("*.py"))
    assert len(sources) > 100
    assert [file for file in sources if imported_modules(file) & picklers] == []
