"""L14: the published files agree with each other, with their schema, and with themselves."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from headway.records.record import Failure
from headway.report import Report, build, write_reports
from headway.report.csv_rows import report_csv
from headway.report.files import render, report_json
from headway.report.model import DurationSummary
from headway.report.schema import report_schema, schema_text

DOCS = Path(__file__).parents[3] / "docs"
UNITS = ("_s", "_per_s", "_bytes", "_tokens", "_share")
COUNTS = {
    "done_again_as",
    "cancelled",
    "completed",
    "count",
    "cpu_share_max",
    "cpu_share_mean",
    "duplicates",
    "errored",
    "failed",
    "first",
    "first_index",
    "first_turn",
    "first_worker",
    "good",
    "last",
    "limit",
    "lost_requests",
    "max",
    "mean",
    "met",
    "missed",
    "missing",
    "never_sent",
    "new_connections",
    "offered",
    "outside_window",
    "recorded",
    "resent",
    "samples",
    "schema_version",
    "seed",
    "stage",
    "status",
    "undefined",
    "value",
    "worker",
    "workers",
    "z",
}
"""Numbers without a unit: counts, ordinals, and values whose unit is in `measure`."""


@pytest.fixture
def report(steady: Any, make: Any) -> Report:
    writer = steady(
        spec={"objectives": {"ttft_s": 0.1}, "target": {"url": "http://t"}, "labels": {"a": "b"}},
        calibration={"requests": 10, "duration_s": 1.0, "ttft_p50_s": 0.0001},
    )
    writer.started(stage=1, name="constant 10/s")
    writer.records(make.errored(i, i / 10, stage=1) for i in range(20))
    return build(writer.directory)


def test_the_published_schema_is_that_of_the_code() -> None:
    published = (DOCS / "report-schema.json").read_bytes()
    assert published == schema_text(), (
        "run: python -m headway.report.schema > docs/report-schema.json"
    )


def test_a_report_is_valid_by_the_published_schema(report: Report) -> None:
    document = json.loads(report_json(report))
    validator = jsonschema.Draft202012Validator(
        json.loads((DOCS / "report-schema.json").read_text())
    )
    validator.check_schema(validator.schema)
    validator.validate(document)
    document["stages"][0]["ttft"]["p50_s"] = "fast"
    assert not validator.is_valid(document)


def test_a_report_can_be_read_back(report: Report) -> None:
    assert msgspec.json.decode(report_json(report), type=Report) == report


def test_every_number_has_its_unit_in_its_name() -> None:
    unitless = set()
    for definition in report_schema()["$defs"].values():
        for name, field in definition.get("properties", {}).items():
            kinds = {part.get("type") for part in field.get("anyOf", [field])}
            if kinds & {"number", "integer"} and not name.endswith(UNITS):
                unitless.add(name)
    assert unitless == COUNTS


def test_infinity_is_a_word_that_strict_json_can_hold(report: Report) -> None:
    document = json.loads(report_json(report), parse_constant=pytest.fail)
    assert document["stages"][1]["with_failures"]["latency"]["p50_s"] == "Infinity"


def test_the_csv_has_one_row_a_stage_with_units_in_its_headers(report: Report) -> None:
    rows = list(csv.DictReader(io.StringIO(report_csv(report))))
    assert [row["name"] for row in rows] == ["constant 50/s", "constant 10/s"]
    assert float(rows[0]["ttft_p50_s"]) == pytest.approx(0.02)
    assert rows[0]["tls_p50_s"] == ""
    assert rows[1]["ttft_p50_s"] == ""
    assert rows[1]["latency_with_failures_p99_s"] == "Infinity"
    assert rows[1]["verdict"] == "ERRORS"
    assert rows[0]["good_share"] == "1.0"


def test_csv_and_json_say_the_same(report: Report) -> None:
    document = json.loads(report_json(report))
    for row, stage in zip(
        csv.DictReader(io.StringIO(report_csv(report))), document["stages"], strict=True
    ):
        for name in ("latency", "response", "lateness"):
            for point in ("p50_s", "p99_s", "max_s"):
                value = stage[name] and stage[name][point]
                assert row[f"{name}_{point}"] == ("" if value is None else str(value))


def test_all_formats_are_written_into_the_run_directory(report: Report, steady: Any) -> None:
    directory = steady().directory
    written = write_reports(directory, report)
    assert [file.name for file in written] == ["report.json", "report.csv", "report.html"]
    assert all(file.stat().st_size > 100 for file in written)
    assert render(report, "html") == written[2].read_bytes()


def test_an_empty_run_still_renders(write_run: Any) -> None:
    report = build(write_run().directory)
    assert report_csv(report) == ""
    assert b"NOTHING MEASURED" in render(report, "html")


def test_every_duration_field_of_a_stage_is_in_the_csv() -> None:
    from headway.report.csv_rows import DURATIONS
    from headway.report.model import StageReport

    fields = {
        field.name
        for field in msgspec.structs.fields(StageReport)
        if DurationSummary in getattr(field.type, "__args__", ())
    }
    assert fields == set(DURATIONS)


def test_a_formula_in_a_stage_name_stays_a_name(write_run: Any) -> None:
    """A spreadsheet must not run what a spec put into a stage's name."""
    writer = write_run()
    writer.started(name="=HYPERLINK(1)")
    writer.ended(1)
    assert "'=HYPERLINK" in report_csv(build(writer.directory))


def test_failures_survive_the_way_into_the_files(write_run: Any, make: Any) -> None:
    writer = write_run()
    writer.started()
    body = 'line one\n"quoted", <b>bold</b> \u2028 é'
    writer.records([make.errored(0, 0.0, Failure("http_status", "HTTP 500", 500, body))])
    writer.ended(1, offered=1)
    document = json.loads(report_json(build(writer.directory)))
    assert document["stages"][0]["errors"][0]["body"] == body
