"""The server's own log: a line is an object, and secrets are not in it."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from headway.core.json_log import REDACTED, JsonFormatter, redact


def formatted(message: str, *args: Any, fields: dict[str, Any] | None = None) -> dict[str, Any]:
    record = logging.LogRecord("headway.x", logging.INFO, "f", 1, message, args, None)
    record.fields = fields
    line = JsonFormatter().format(record)
    assert "\n" not in line
    parsed: dict[str, Any] = json.loads(line)
    return parsed


def test_a_record_is_one_line_with_its_fields() -> None:
    line = formatted("job %s\nended", "a1", fields={"job_id": "a1", "status": 200})
    assert (line["message"], line["job_id"], line["status"]) == ("job a1\nended", "a1", 200)
    assert line["level"] == "info"
    assert line["at"].endswith("+00:00")


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer hush", "bearer hush", "token=hush", "api_key: hush", "API-KEY=hush",
        "password = hush, more", "http://h/?token=hush&x=1",
    ],
)  # fmt: skip
def test_what_follows_the_name_of_a_secret_is_taken_out(text: str) -> None:
    assert "hush" not in redact(text)
    assert REDACTED in redact(text)


def test_fields_named_like_a_secret_are_not_written() -> None:
    line = formatted("x", fields={"api_token": "hush", "note": "password=hush"})
    assert "hush" not in json.dumps(line)


def test_ordinary_words_stay() -> None:
    text = "tokens per second: 5, secretary, job 01m8"
    assert redact(text) == text


def test_a_traceback_is_in_its_field_and_redacted() -> None:
    try:
        raise ValueError("token=hush")
    except ValueError as error:
        exc_info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("x", logging.ERROR, "f", 1, "broke", (), exc_info)
    line = json.loads(JsonFormatter().format(record))
    assert "ValueError" in line["traceback"]
    assert "hush" not in json.dumps(line)
