"""What goes wrong over HTTP, as data (L13, trap 48)."""

from __future__ import annotations

import pytest

from headway.backends.failures import body_start, error_text, failure_of, is_html, retry_after_s
from headway.records.record import MAX_BODY_CHARS
from headway.wire.exchange import Exchange, WireFailure
from headway.wire.redaction import Redactor

NOTHING = Redactor([])


def answered(status: int, body: bytes = b"", **headers: str) -> Exchange:
    exchange = Exchange()
    exchange.status = status
    exchange.reads = [(1, body)] if body else []
    exchange.raw_headers = {
        name.replace("_", "-").encode(): value.encode() for name, value in headers.items()
    }
    return exchange


def test_an_error_status_keeps_status_and_body() -> None:
    failure = failure_of(answered(400, b'{"error":{"message":"too long"}}'), NOTHING)
    assert failure is not None
    assert (failure.category, failure.status) == ("http_status", 400)
    assert failure.message == "HTTP 400 Bad Request"
    assert failure.body == '{"error":{"message":"too long"}}'


def test_a_body_is_cut_in_whole_characters_whatever_reads_it_came_in() -> None:
    exchange = answered(500)
    exchange.reads = [(1, "ż".encode()[:1]), (2, "ż".encode()[1:] + "é".encode() * 9000)]
    body = body_start(exchange, NOTHING)
    assert body == "ż" + "é" * (MAX_BODY_CHARS - 1)


def test_secrets_that_a_target_echoes_are_hidden() -> None:
    failure = failure_of(answered(401, b"key s3cret is wrong"), Redactor(["s3cret"]))
    assert failure is not None
    assert failure.body == "key *** is wrong"


def test_a_redirect_names_where_to() -> None:
    failure = failure_of(answered(308, Location="https://new.example/v1"), NOTHING)
    assert failure is not None
    assert failure.message.startswith("HTTP 308 Permanent Redirect: redirected to https://new.")
    assert "not followed" in failure.message


def test_an_unknown_status_is_named_by_its_number() -> None:
    failure = failure_of(answered(599), NOTHING)
    assert failure is not None
    assert failure.message == "HTTP 599"


def test_a_wire_failure_keeps_its_category_and_what_was_read() -> None:
    exchange = answered(200, b"data: begun")
    exchange.failure = WireFailure("disconnected", "the target closed the connection")
    failure = failure_of(exchange, NOTHING)
    assert failure is not None
    assert (failure.category, failure.status, failure.body) == ("disconnected", 200, "data: begun")


@pytest.mark.parametrize(
    ("value", "date", "seconds"),
    [
        ("7", None, 7.0),
        ("0.5", None, 0.5),
        ("-3", None, 0.0),
        ("Wed, 21 Oct 2026 07:28:30 GMT", "Wed, 21 Oct 2026 07:28:00 GMT", 30.0),
        ("Wed, 21 Oct 2026 07:28:30 GMT", None, None),
        ("soon", "Wed, 21 Oct 2026 07:28:00 GMT", None),
    ],
)
def test_retry_after(value: str, date: str | None, seconds: float | None) -> None:
    headers = {"Retry_After": value} | ({"Date": date} if date else {})
    assert retry_after_s(answered(429, **headers)) == seconds


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"error":{"message":"a","type":"b"}}', "a"),
        (b'{"error":"a"}', "a"),
        (b'{"detail":"a"}', "a"),
        (b'{"message":"a"}', "a"),
        (b'{"object":"error","message":"a"}', "a"),
        (b"[1]", None),
        (b"not json", None),
        (b"{}", None),
    ],
)
def test_the_sentence_in_an_error_body(body: bytes, text: str | None) -> None:
    assert error_text(body) == text


def test_pages_for_people_are_told_by_type_or_start() -> None:
    assert is_html(answered(200, b"x", Content_Type="text/html; charset=utf-8"))
    assert is_html(answered(200, b" \n<!DOCTYPE html>"))
    assert not is_html(answered(200, b'{"data":[]}', Content_Type="application/json"))
