"""Refuses request bodies over the limit, before or while they arrive, alone or all together.

Starlette's own middleware answers such a request in plain text, whatever the application says;
every error of this API is a problem document.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headway.api.problems import problem_response

_TOO_MUCH = "the server is taking in as much as it can; send the request again later"
_RETRY_AFTER_S = "1"


class BodyLimit:
    """Wraps the application.

    Args:
        app: What answers.
        limit_bytes: Largest body.
        together_bytes: Bodies of all requests that are being answered: some thousand connections
            with a body of the largest size each are more memory than a host has.
    """

    def __init__(self, app: ASGIApp, limit_bytes: int, together_bytes: int) -> None:
        self._app = app
        self._limit_bytes = limit_bytes
        self._together_bytes = together_bytes
        self._held_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._is_announced_too_large(Headers(scope=scope)):
            response = problem_response(413, self._sentence, request=Request(scope))
            await response(scope, receive, send)
            return
        received_bytes = 0

        async def receive_counted() -> Message:
            nonlocal received_bytes
            message = await receive()
            size = len(message.get("body", b""))
            received_bytes += size
            self._held_bytes += size
            if size and self._held_bytes > self._together_bytes:
                raise HTTPException(503, _TOO_MUCH, headers={"retry-after": _RETRY_AFTER_S})
            if received_bytes > self._limit_bytes:
                # An HTTPException, because FastAPI answers 400 to any other while it reads a body.
                raise HTTPException(413, self._sentence)
            return message

        try:
            await self._app(scope, receive_counted, send)
        finally:
            self._held_bytes -= received_bytes

    @property
    def _sentence(self) -> str:
        return f"a request body may have {self._limit_bytes} bytes at most"

    def _is_announced_too_large(self, headers: Headers) -> bool:
        # The server in front has checked that the header is a number.
        return int(headers.get("content-length", "0")) > self._limit_bytes
