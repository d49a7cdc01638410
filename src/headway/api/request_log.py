"""What is noted of every request: an id, a line in the log, and a measurement.

It stands around everything else, so every answer gets its headers here, that to a bug included.

A plain ASGI callable: BaseHTTPMiddleware halves the request rate (6,980 to 3,810 requests/s).
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import MutableMapping
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headway.access.tokens import PREFIX
from headway.api.metrics import ApiMetrics
from headway.api.problems import problem_response
from headway.api.security_headers import NO_STORE, SECURITY_HEADERS
from headway.core.clock import Clock, s_from_ns

_TOKEN = re.compile(rf"{PREFIX}[0-9A-Za-z_]+")
_LOG = logging.getLogger("headway.api.requests")
_QUIET_ROUTES = frozenset({"/healthz", "/readyz", "/metrics"})
_BUSY = frozenset({429, 503})
# The text of an unforeseen error may hold anything; the log has it under the request's id.
_BUG = "something went wrong in the server; its log tells more under this request id"


class RequestLog:
    """Wraps the application.

    Args:
        app: What answers.
        metrics: Where durations and refusals are counted.
        clock: Measures durations.
    """

    def __init__(self, app: ASGIApp, metrics: ApiMetrics, clock: Clock) -> None:
        self._app = app
        self._metrics = metrics
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_ns = self._clock.monotonic_ns()
        scope["headway.request_id"] = request_id = secrets.token_hex(8)
        status = 0

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = message["headers"]
                kept = any(name == b"cache-control" for name, _ in headers)
                message["headers"] = [
                    *headers,
                    *SECURITY_HEADERS,
                    *(() if kept else (NO_STORE,)),
                    (b"x-request-id", request_id.encode()),
                ]
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        except Exception:
            if status:
                raise  # the answer has begun: the connection is cut, and the client sees that
            _LOG.exception("bug", extra={"fields": {"request_id": request_id}})
            response = problem_response(500, _BUG, request=Request(scope))
            await response(scope, receive, send_noted)
        finally:
            # 499 as in nginx's log: the client went away before there was an answer.
            self._note(scope, status or 499, s_from_ns(self._clock.monotonic_ns() - started_ns))

    def _note(self, scope: Scope, status: int, duration_s: float) -> None:
        route = route_of(scope)
        self._metrics.requests.labels(scope["method"], route, status).observe(duration_s)
        if status in _BUSY:
            self._metrics.refusals.labels(route, status).inc()
        if route in _QUIET_ROUTES and status < 400:
            return
        level = logging.ERROR if status >= 500 else logging.INFO
        _LOG.log(level, "request", extra={"fields": _fields(scope, status, duration_s)})


def route_of(scope: MutableMapping[str, Any]) -> str:
    """The route's template, so that labels stay few whatever paths are tried."""
    route = scope.get("route")
    path = getattr(route, "path", None)
    return path if isinstance(path, str) else "none"


def _fields(scope: Scope, status: int, duration_s: float) -> dict[str, Any]:
    # A token that somebody put into the address must not get into the log: the path without its
    # query, and without the code of a sign-in link.
    path: str = scope["path"]
    fields = {
        "method": scope["method"],
        "path": _TOKEN.sub("(token)", path) if PREFIX in path else path,
        "status": status,
        "duration_ms": round(duration_s * 1000, 3),
        "request_id": scope["headway.request_id"],
    }
    job_id = scope.get("path_params", {}).get("job_id")
    return fields if job_id is None else {**fields, "job_id": job_id}
