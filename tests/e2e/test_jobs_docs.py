"""What docs/jobs.md tells people to type works, and what the pages list is what there is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from headway.api.fair_use_settings import FairUseSettings
from headway.api.serve_settings import ServeSettings
from headway.cli.exit_codes import ExitCode
from headway.store.waits import HoldRule

ROOT = Path(__file__).parents[2]
JOBS = ROOT / "docs" / "jobs.md"
API = ROOT / "docs" / "api.md"
FAIRNESS = ROOT / "docs" / "fairness.md"
METRICS = ROOT / "docs" / "metrics-prometheus.md"

# A dozen commands one after another; on a busy machine each takes some seconds to start.
pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def page_server(start_module_server: Any) -> Any:
    return start_module_server(operations=ROOT / "examples" / "ops.py")


def blocks(page: Path, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)


def environ(server: Any) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**server.environ, "PATH": path}


def test_the_commands_of_the_guide_work(page_server: Any, tmp_path: Path) -> None:
    """A walk through REST, SDK and command line, as a reader would type it."""
    shells = blocks(JOBS, "sh jobs")
    assert len(shells) >= 5
    for block in shells:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block],
            cwd=tmp_path, env=environ(page_server), text=True, capture_output=True, timeout=300,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"


def test_the_commands_about_fairness_work(page_server: Any, tmp_path: Path) -> None:
    """J25: what the page tells administrators to type, and whoever waits."""
    shells = blocks(FAIRNESS, "sh fairness")
    assert len(shells) == 4
    for block in shells:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block],
            cwd=tmp_path, env=environ(page_server), text=True, capture_output=True, timeout=300,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"


def test_what_the_page_says_about_fairness_is_so() -> None:
    page = FAIRNESS.read_text(encoding="utf-8")
    for rule in HoldRule:
        assert f"`{rule}`" in page, rule
    [config] = blocks(FAIRNESS, "yaml")
    settings = ServeSettings(operations=("x",), state_dir=Path("x"), **yaml.safe_load(config))
    assert settings.fair_use() == FairUseSettings()
    assert settings == ServeSettings(operations=("x",), state_dir=Path("x"))


def test_the_python_of_the_guide_works(page_server: Any, tmp_path: Path) -> None:
    [code] = blocks(JOBS, "python jobs")
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, env=environ(page_server), text=True, capture_output=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "succeeded at attempt 3" in done.stdout


def test_the_exit_codes_of_the_guide_are_the_codes_that_there_are() -> None:
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", JOBS.read_text(), re.M)}
    assert codes <= {code.value for code in ExitCode}
    jobs = {code.value for code in ExitCode if 10 <= code.value < 100}
    assert jobs <= codes


def test_every_route_is_in_the_page_and_every_one_in_the_page_exists(page_server: Any) -> None:
    with httpx.Client(base_url=page_server.url, verify=False, timeout=60) as http:
        paths = http.get("/openapi.json").json()["paths"]
    served = {
        (method.upper(), "/v1/operations/{name}" if _is_submit(path, method) else path)
        for path, methods in paths.items()
        for method in methods
    }
    listed = set(re.findall(r"^\| `(GET|POST|PUT|DELETE) (/\S+?)`", API.read_text(), re.M))
    assert listed == served


def test_every_metric_is_in_the_page_and_every_one_in_the_page_exists(page_server: Any) -> None:
    """J15: names documented and tested."""
    with page_server.client() as client:
        client.run("primes", {"below": 10})
    with httpx.Client(base_url=page_server.url, verify=False, timeout=60) as http:
        text = http.get("/metrics").text
    served = set(re.findall(r"^# TYPE (\S+) ", text, re.M))
    listed = set(re.findall(r"^\| `(headway_\S+)`", METRICS.read_text(), re.M))
    assert listed == served


def _is_submit(path: str, method: str) -> bool:
    return method == "post" and path.startswith("/v1/operations/")
