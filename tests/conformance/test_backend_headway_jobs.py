"""A Headway server under load by its own jobs (L9)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from job_servers import JobServer

from headway.cli.exit_codes import ExitCode


def bench(url: str, run_dir: Path, *arguments: str) -> tuple[int, str, list[dict[str, Any]]]:
    done = subprocess.run(
        [
            sys.executable, "-m", "headway.cli.main", "bench", url, "--backend", "headway-jobs",
            "--no-calibrate", "--quiet", "--run-dir", str(run_dir), *arguments,
        ],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    records = run_dir / "records.jsonl"
    lines = records.read_text(encoding="utf-8").splitlines() if records.exists() else []
    return done.returncode, done.stderr, [json.loads(line) for line in lines]


def test_each_request_is_a_job_that_succeeded(server: JobServer, tmp_path: Path) -> None:
    code, said, records = bench(
        server.url, tmp_path / "run", "--operation", "echo", "--job-input", '{"text": "{prompt}"}',
        "--input", "4", "--max-requests", "10", "--streams", "2", "--capture-text",
    )  # fmt: skip
    assert code in (ExitCode.OK, ExitCode.INVALID_MEASUREMENT), said
    assert [one["status"] for one in records] == ["completed"] * 10
    with server.client() as client:
        jobs = {job.id for job in client.list(operation="echo").jobs}
    assert {json.loads(one["partial_text"])["job"]["id"] for one in records} == jobs


def test_a_job_that_fails_is_a_failed_request_with_the_job_s_error(
    server: JobServer, tmp_path: Path
) -> None:
    code, said, records = bench(
        server.url, tmp_path / "run", "--operation", "fail", "--max-requests", "3",
        "--streams", "1", "--job-input", "{}",
    )  # fmt: skip
    assert code == ExitCode.ALL_REQUESTS_FAILED
    assert "a job ended as failed: no luck" in said
    assert {one["failure"]["category"] for one in records} == {"server"}


def test_a_job_that_takes_longer_than_the_wait_is_a_timeout(
    server: JobServer, tmp_path: Path
) -> None:
    _, said, records = bench(
        server.url, tmp_path / "run", "--operation", "sleep", "--job-input", '{"seconds": 3}',
        "--job-wait", "200ms", "--max-requests", "1", "--streams", "1",
    )  # fmt: skip
    assert "a job had not ended after 0.2 s" in said
    assert records[0]["failure"]["category"] == "timeout"


def test_an_operation_that_is_not_offered_is_said_before_anything_is_sent(
    server: JobServer, tmp_path: Path
) -> None:
    code, said, records = bench(server.url, tmp_path / "run", "--operation", "nosuch")
    assert code == ExitCode.TARGET_UNREACHABLE
    assert "does not offer the operation 'nosuch'" in said
    assert not records
