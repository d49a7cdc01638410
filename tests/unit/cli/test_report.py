from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from headway.cli.report import report_command
from headway.core.errors import ConfigError
from headway.records.record import RequestRecord, StageStarted
from headway.records.run_dir import RunDirectory, RunFile


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Path]:
    """A run that was killed in its first stage, in the middle of a line."""
    run = RunFile(run_id="r1", created="2026-11-30T00:00:00Z", seed=1, spec={})
    directory = RunDirectory.create(tmp_path / "run", run)
    directory.append_event(
        StageStarted(
            stage=0,
            name="constant 10/s",
            profile={"kind": "constant", "rate": [10]},
            started_wall="2026-11-30T00:00:00Z",
            started_monotonic_ns=1,
            workers=1,
        )
    )
    for i in range(20):
        record = RequestRecord(
            stage=0, index=i, status="completed", due_ns=i * 10**8, sent_ns=i * 10**8,
            done_ns=i * 10**8 + 10**7,
        )  # fmt: skip
        directory.append_records(msgspec.json.encode(record) + b"\n")
    directory.append_records(b'{"stage":0,"ind')
    yield directory.path
    directory.close()


def test_a_killed_run_is_reported_from_its_records(run: Path) -> None:
    result = CliRunner().invoke(report_command, [str(run)])
    assert result.exit_code == 0, result.output
    assert "(partial)" in result.output
    for name in ("report.json", "report.csv", "report.html"):
        assert (run / name).stat().st_size > 0
    assert json.loads((run / "report.json").read_bytes())["stages"][0]["counts"]["completed"] == 20


def test_json_goes_to_standard_output_alone_and_nothing_is_written(run: Path) -> None:
    result = CliRunner().invoke(report_command, [str(run), "--json"])
    assert json.loads(result.stdout)["complete"] is False
    assert not (run / "report.json").exists()


def test_a_format_can_be_asked_for_alone(run: Path) -> None:
    result = CliRunner().invoke(report_command, [str(run), "--format", "csv", "--quiet"])
    assert result.output == ""
    assert [file.name for file in run.glob("report.*")] == ["report.csv"]


def test_what_is_no_run_is_a_clear_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(report_command, [str(tmp_path)])
    assert isinstance(result.exception, ConfigError)
    assert "has no run.json" in str(result.exception)
