from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result

from headway.cli.export import export_command
from headway.core.errors import ConfigError, DiskError

MakeRun = Callable[..., Path]


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(export_command, [str(one) for one in arguments])


def test_csv_has_one_row_a_request_with_empty_cells_for_what_is_absent(make_run: MakeRun) -> None:
    result = invoke(make_run("a", seconds=5, error_share=0.2), "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert len(rows) == 100
    failed = [row for row in rows if row["status"] == "errored"]
    assert failed
    assert {row["failure_category"] for row in failed} == {"http_status"}
    assert {row["first_token_ns"] for row in failed} == {""}
    done = next(row for row in rows if row["status"] == "completed")
    assert int(done["done_ns"]) > int(done["due_ns"])
    assert done["failure_message"] == ""


def test_csv_goes_to_a_file_when_one_is_named(make_run: MakeRun, tmp_path: Path) -> None:
    result = invoke(make_run("a", seconds=5), "--format", "csv", "-o", tmp_path / "r.csv")
    assert result.stdout == ""
    assert (tmp_path / "r.csv").read_text(encoding="utf-8").count("\n") == 101


def test_parquet_goes_where_it_is_asked_to(make_run: MakeRun, tmp_path: Path) -> None:
    invoke(make_run("a", seconds=5), "--format", "parquet", "-o", tmp_path / "r.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "r.parquet").num_rows == 100


def test_llmd_prints_one_stage_and_writes_several_to_a_directory(
    make_run: MakeRun, tmp_path: Path
) -> None:
    one = invoke(make_run("a", seconds=5), "--format", "llmd")
    assert json.loads(one.stdout)["version"] == "0.2.1"
    two = make_run("b", seconds=5, stages=("x", "y"))
    refused = invoke(two, "--format", "llmd")
    assert isinstance(refused.exception, ConfigError)
    invoke(two, "--format", "llmd", "-o", tmp_path / "reports")
    names = sorted(file.name for file in (tmp_path / "reports").iterdir())
    assert names == ["benchmark_report_stage_0.json", "benchmark_report_stage_1.json"]


@pytest.mark.parametrize("format_", ["csv", "parquet", "llmd"])
def test_what_is_no_run_is_a_clear_error(tmp_path: Path, format_: str) -> None:
    result = invoke(tmp_path, "--format", format_, "-o", tmp_path / "out")
    assert isinstance(result.exception, ConfigError)
    assert not (tmp_path / "out").exists()


def test_a_file_that_cannot_be_written_is_a_clear_error(make_run: MakeRun, tmp_path: Path) -> None:
    target = tmp_path / "missing" / "r.csv"
    result = invoke(make_run("a", seconds=5), "--format", "csv", "-o", target)
    assert isinstance(result.exception, DiskError)
    assert "missing" in str(result.exception)
