"""Why a request has no answer, as data: category, one sentence, status, start of the body (L13)."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from http import HTTPStatus

import msgspec

from headway.records.record import MAX_BODY_CHARS, ErrorCategory, Failure
from headway.wire.exchange import Exchange
from headway.wire.redaction import Redactor

# Enough bytes for MAX_BODY_CHARS characters of four bytes each.
_BODY_BYTES = 4 * MAX_BODY_CHARS


def failure_of(exchange: Exchange, redactor: Redactor) -> Failure | None:
    """What is wrong with an exchange, as far as HTTP tells; None: its body can be read."""
    if exchange.failure is not None:
        return Failure(
            category=exchange.failure.category,
            message=redactor.redact(exchange.failure.message),
            status=exchange.status,
            body=body_start(exchange, redactor),
        )
    status = exchange.status
    if status is None or status >= 300:
        return Failure(
            category="http_status",
            message=_status_text(exchange, redactor),
            status=status,
            body=body_start(exchange, redactor),
            retry_after_s=retry_after_s(exchange),
        )
    return None


def reply_failure(
    category: ErrorCategory, message: str, exchange: Exchange, redactor: Redactor
) -> Failure:
    """A reply came, but not one that can be used."""
    return Failure(
        category=category,
        message=redactor.redact(message),
        status=exchange.status,
        body=body_start(exchange, redactor),
    )


def body_start(exchange: Exchange, redactor: Redactor) -> str | None:
    """The start of the reply's body as text; None when there was none."""
    start = b""
    for _, piece in exchange.reads:
        start += piece[: _BODY_BYTES - len(start)]
        if len(start) == _BODY_BYTES:
            break
    text = redactor.redact(start.decode("utf-8", "replace"))[:MAX_BODY_CHARS]
    return text or None


def error_text(body: bytes) -> str | None:
    """The message inside a JSON error reply, in any of the shapes that servers use."""
    try:
        reply = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return None
    return error_message(reply) if isinstance(reply, dict) else None


def error_message(reply: object) -> str | None:
    """The sentence in a decoded error: `{"error": {"message"}}`, `{"detail"}` and their kin."""
    if isinstance(reply, str):
        return reply or None
    if not isinstance(reply, dict):
        return None
    for key in ("error", "message", "detail", "msg"):
        found = error_message(reply.get(key))
        if found:
            return found
    return None


def is_html(exchange: Exchange) -> bool:
    """Whether the body is a page for people: a login form, a proxy's error, a web interface."""
    if "html" in exchange.headers.get("content-type", ""):
        return True
    start = exchange.reads[0][1][:64].lstrip().lower() if exchange.reads else b""
    return start.startswith((b"<!doctype", b"<html"))


def retry_after_s(exchange: Exchange) -> float | None:
    """The Retry-After header in seconds; a date is taken relative to the reply's own Date."""
    headers = exchange.headers
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        gap = parsedate_to_datetime(value) - parsedate_to_datetime(headers["date"])
    except (ValueError, KeyError, TypeError):
        return None
    return max(0.0, gap.total_seconds())


def _status_text(exchange: Exchange, redactor: Redactor) -> str:
    status = exchange.status
    if status is None:
        return "the reply has no status"
    try:
        name = f"HTTP {status} {HTTPStatus(status).phrase}"
    except ValueError:
        name = f"HTTP {status}"
    location = exchange.headers.get("location")
    if status < 400 and location is not None:
        where = redactor.redact(location)
        return f"{name}: redirected to {where}; redirects are not followed, give that URL instead"
    return name
