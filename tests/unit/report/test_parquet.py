from __future__ import annotations

from typing import Any

import pytest

from headway.records.run_dir import RunDirectory
from headway.report.parquet import write_parquet

parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra: parquet")


def test_every_record_becomes_a_row_and_missing_stays_null(write_run: Any, make: Any) -> None:
    writer = write_run()
    records = [make.completed(0, 0.0), make.errored(1, 0.5), make.never_sent(2, 1.0)]
    writer.records(records)
    rows = parquet.read_table(write_parquet(RunDirectory(writer.directory.path))).to_pylist()
    assert [row["status"] for row in rows] == ["completed", "errored", "cancelled"]
    assert rows[0]["gaps_ns"] == records[0].gaps_ns
    assert rows[0]["first_token_ns"] == records[0].first_token_ns
    assert rows[0]["failure_category"] is None
    assert (rows[1]["failure_category"], rows[1]["failure_status"]) == ("http_status", 500)
    assert rows[1]["failure_body"] == '{"error": "boom"}'
    assert rows[2]["sent_ns"] is None
    assert not list(writer.directory.path.glob("*.tmp"))


def test_a_run_without_records_has_no_rows(write_run: Any) -> None:
    assert parquet.read_table(write_parquet(write_run().directory)).num_rows == 0
