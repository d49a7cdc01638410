"""Whatever is wrong with a target is said in one sentence, in time, with its own exit code."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headway.cli.exit_codes import ExitCode

Bench = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Runs `headway bench` in a directory of its own."""

    def run(*arguments: str, deadline_s: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "headway.cli.main", "bench", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=deadline_s,
        )

    return run


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed_port() -> int:
    """A port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_a_port_where_nothing_listens_is_unreachable(bench: Bench, closed_port: int) -> None:
    done = bench(f"http://127.0.0.1:{closed_port}")
    assert done.returncode == ExitCode.TARGET_UNREACHABLE
    assert done.stderr.count("\n") == 1
    assert str(closed_port) in done.stderr
    assert "refused" in done.stderr


def test_a_server_that_answers_401_is_told_with_the_body_s_reason(bench: Bench, sim: Any) -> None:
    server = sim(api_key="the-right-key")
    done = bench(server.url)
    assert done.returncode == ExitCode.TARGET_UNREACHABLE
    assert "401" in done.stderr
    assert "key" in done.stderr


def test_a_server_that_answers_200_with_html_is_no_api(bench: Bench, sim: Any) -> None:
    server = sim(fault=["html:on=all"])
    done = bench(server.url)
    assert done.returncode == ExitCode.TARGET_UNREACHABLE
    assert "HTML" in done.stderr


def test_a_server_that_never_answers_is_given_up_within_its_timeout(
    bench: Bench, silent_port: int
) -> None:
    """Trap 32: nothing waits for ever on a silent server."""
    done = bench(f"http://127.0.0.1:{silent_port}", "--timeout", "2s", "--connect-timeout", "2s")
    assert done.returncode == ExitCode.TARGET_UNREACHABLE
    assert "2" in done.stderr


def test_a_misspelt_model_is_answered_with_the_models_there_are(bench: Bench, sim: Any) -> None:
    server = sim(model=["tiny-llama"])
    done = bench(server.url, "--model", "tiny-lama")
    assert done.returncode == ExitCode.TARGET_UNREACHABLE
    assert "tiny-lama" in done.stderr
    assert "tiny-llama" in done.stderr


def test_when_every_request_fails_the_reasons_are_printed_and_the_code_says_so(
    bench: Bench, sim: Any, tmp_path: Path
) -> None:
    """Trap 48: all requests failing gave exit code 0 and a table of zeros."""
    server = sim(fault=["error:status=400"])
    load = ("--streams", "2", "--max-requests", "10", "--no-calibrate", "--run-dir", "run")
    done = bench(server.url, "--input", "8", *load)
    assert done.returncode == ExitCode.ALL_REQUESTS_FAILED, done.stderr
    assert "10 × http_status 400" in done.stderr
    report = json.loads((tmp_path / "run" / "report.json").read_text(encoding="utf-8"))
    assert report["stages"][0]["latency"] is None
    assert report["stages"][0]["errors"][0]["body"]
