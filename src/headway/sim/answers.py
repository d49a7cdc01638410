"""Whole answers: JSON, text, and refusals in the OpenAI error shape."""

from __future__ import annotations

import msgspec

from headway.sim.faults import Faults
from headway.sim.http import JSON, Connection, Request, content_length, response_head
from headway.sim.messages import Refusal

HTML_BODY = b"<!DOCTYPE html><html><body><h1>Welcome</h1><p>This is no API.</p></body></html>\n"
_HTML = b"text/html; charset=utf-8"

_INJECTED = {
    401: ("Incorrect API key provided.", "invalid_request_error", "invalid_api_key"),
    429: ("Rate limit reached.", "rate_limit_error", "rate_limit_exceeded"),
    503: ("The engine is overloaded.", "server_error", "overloaded"),
}


def request_id_header(request: Request) -> bytes:
    """The client's request id, to be sent back; empty when it sent none."""
    sent = request.headers.get(b"x-request-id")
    return b"x-request-id: %b\r\n" % sent if sent is not None else b""


def send_answer(
    connection: Connection,
    status: int,
    body: bytes,
    content_type: bytes = JSON,
    headers: bytes = b"",
) -> None:
    """Answer the connection's current request and go on with the next."""
    request = connection.current
    if request is None:
        return
    head = response_head(status, content_type, content_length(body), request.keep_alive)
    sent = b"" if request.method == b"HEAD" else body
    connection.send(b"%b%b%b\r\n%b" % (head, request_id_header(request), headers, sent))
    connection.finish()


def send_refusal(connection: Connection, refusal: Refusal, headers: bytes = b"") -> None:
    """Answer with an error as OpenAI writes it."""
    error = {
        "message": refusal.message,
        "type": refusal.type,
        "param": refusal.param,
        "code": refusal.code,
    }
    send_answer(connection, refusal.status, msgspec.json.encode({"error": error}), headers=headers)


def send_injected(connection: Connection, faults: Faults) -> int:
    """Answer as `faults` want it instead of as asked; returns the status."""
    if faults.html:
        send_answer(connection, 200, HTML_BODY, _HTML)
        return 200
    status = faults.status or 500
    message, kind, code = _INJECTED.get(
        status, ("The simulated server was told to fail.", "server_error", "injected_fault")
    )
    headers = b""
    if faults.retry_after_s is not None:
        headers = b"retry-after: %g\r\n" % faults.retry_after_s
    send_refusal(connection, Refusal(status, message, kind, code=code), headers)
    return status
