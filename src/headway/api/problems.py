"""Errors as RFC 9457 problem documents: the one shape of every answer of status 400 and above."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from headway.client.models import FieldProblem, Problem
from headway.core.errors import StoreUnavailable

MEDIA_TYPE = "application/problem+json"
MAX_FIELD_PROBLEMS = 50
_STORE_RETRY_AFTER_S = "1"

_TITLES = {
    400: "The request cannot be read",
    401: "Who are you?",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "Too slow",
    409: "Conflict",
    413: "Too large",
    414: "The address is too long",
    415: "Unsupported media type",
    421: "Not this server",
    422: "A field is wrong",
    429: "Too many requests",
    431: "The header is too large",
    500: "Internal error",
    503: "Busy",
}


class Refusal(Exception):
    """Raised by a route to answer with a problem document."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        errors: Sequence[FieldProblem] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.errors = errors
        self.headers = dict(headers or {})


def problem_response(
    status: int,
    detail: str,
    *,
    request: Request | None = None,
    errors: Sequence[FieldProblem] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A problem document as a response."""
    problem = Problem(
        title=_TITLES.get(status, "The request was refused"),
        status=status,
        detail=_sendable(detail),
        errors=list(errors),
        request_id=None if request is None else request.scope.get("headway.request_id"),
    )
    return Response(
        problem.model_dump_json(exclude_none=True),
        status_code=status,
        media_type=MEDIA_TYPE,
        headers=dict(headers or {}),
    )


def field_problems(errors: Sequence[Mapping[str, Any]]) -> list[FieldProblem]:
    """Pydantic's errors as paths and sentences.

    What the client sent is not echoed: it may be a secret, or nothing that JSON can carry.
    """
    return [
        FieldProblem(path=_path(error["loc"]), message=_sendable(_words(error)))
        for error in list(errors)[:MAX_FIELD_PROBLEMS]
    ]


def install_problem_handlers(app: FastAPI) -> None:
    """Make every error of `app` a problem document, those of the framework included.

    Bugs are answered by the request log, which stands around all the rest.
    """
    app.add_exception_handler(Refusal, _on_refusal)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(StoreUnavailable, _on_store_unavailable)


def problem_answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI description of a route's error answers."""
    return {
        status: {
            "description": _TITLES[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in statuses
    }


async def _on_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    if error.status == 401 and _is_page(request):
        return Response(status_code=303, headers={"location": _sign_in(request)})
    return problem_response(
        error.status, error.detail, request=request, errors=error.errors, headers=error.headers
    )


def _is_page(request: Request) -> bool:
    """Whether somebody opens a page in a browser, and is better asked to sign in than told so."""
    accepts = "text/html" in request.headers.get("accept", "")
    return request.method == "GET" and accepts and not request.url.path.startswith("/v1/")


def _page_without_slash(request: Request) -> str | None:
    """The page that is meant by an address with slashes at its end, as people and proxies write it.

    Only one that this server has: `//elsewhere/` without its end is the address of another site.
    """
    written: str = request.scope["path"]
    path = written.rstrip("/")
    if not _is_page(request) or path == written:
        return None
    scope = {**request.scope, "path": path}
    routes = request.app.router.routes
    if not any(route.matches(scope)[0] is Match.FULL for route in routes):
        return None
    query = request.url.query
    return f"{quote(path)}?{query}" if query else quote(path)


def _sign_in(request: Request) -> str:
    query = request.url.query
    path = f"{request.url.path}?{query}" if query else request.url.path
    return f"/login?{urlencode({'next': path})}"


async def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError | ValidationError)
    problems = field_problems(error.errors())
    detail = "the request cannot be used as it is; see the fields"
    return problem_response(422, detail, request=request, errors=problems)


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = error.detail
    if error.status_code == 404 and (page := _page_without_slash(request)) is not None:
        return Response(status_code=303, headers={"location": page})
    if error.status_code == 404:
        detail = f"there is nothing at {request.url.path}"
    elif error.status_code == 405:
        detail = f"{request.method} is not possible at {request.url.path}"
    return problem_response(error.status_code, detail, request=request, headers=error.headers)


async def _on_store_unavailable(request: Request, error: Exception) -> Response:
    headers = {"retry-after": _STORE_RETRY_AFTER_S}
    return problem_response(503, str(error), request=request, headers=headers)


def _words(error: Mapping[str, Any]) -> str:
    # pydantic's own, "Extra inputs are not permitted", tell nobody that a name is misspelt.
    return "there is no such field" if error["type"] == "extra_forbidden" else str(error["msg"])


def _path(location: Sequence[str | int]) -> str:
    # The first part says where FastAPI found it: body, query, path or header.
    parts = [str(part) for part in location]
    if parts and parts[0] == "body":
        parts = parts[1:]
    return _sendable(".".join(parts) or "body")


def _sendable(text: str) -> str:
    """`text` without lone surrogates, which JSON may escape but UTF-8 cannot carry."""
    return text.encode("utf-8", "replace").decode("utf-8")
