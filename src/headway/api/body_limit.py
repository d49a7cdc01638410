"""Refuses request bodies over the limit, before or while they arrive.

Starlette's own middleware answers such a request in plain text, whatever the application says;
every error of this API is a problem document.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headway.api.problems import problem_response


class BodyLimit:
    """Wraps the application.

    Args:
        app: What answers.
        limit_bytes: Largest body.
    """

    def __init__(self, app: ASGIApp, limit_bytes: int) -> None:
        self._app = app
        self._limit_bytes = limit_bytes

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
            received_bytes += len(message.get("body", b""))
            if received_bytes > self._limit_bytes:
                # An HTTPException, because FastAPI answers 400 to any other while it reads a body.
                raise HTTPException(413, self._sentence)
            return message

        await self._app(scope, receive_counted, send)

    @property
    def _sentence(self) -> str:
        return f"a request body may have {self._limit_bytes} bytes at most"

    def _is_announced_too_large(self, headers: Headers) -> bool:
        # The server in front has checked that the header is a number.
        return int(headers.get("content-length", "0")) > self._limit_bytes
