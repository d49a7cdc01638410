"""The JSON Schema of `report.json`, made from the structs that write it."""

from __future__ import annotations

from typing import Any

import msgspec

from headway.report.model import REPORT_SCHEMA_VERSION, Report


def report_schema() -> dict[str, Any]:
    """The schema, with its dialect and title; `docs/report-schema.json` holds the same."""
    schema = msgspec.json.schema(Report)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Headway report, schema version {REPORT_SCHEMA_VERSION}",
        **schema,
    }


def schema_text() -> bytes:
    """The schema as it is published."""
    return msgspec.json.format(msgspec.json.encode(report_schema()), indent=2) + b"\n"


if __name__ == "__main__":
    import sys

    sys.stdout.buffer.write(schema_text())
