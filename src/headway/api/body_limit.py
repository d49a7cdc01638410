"""Refuses request bodies over the limit, before or while they arrive, alone or all together.

Starlette's own middleware answers such a request in plain text, whatever the application says;
every error of this API is a problem document.
"""

from __future__ import annotations

from collections import Counter

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headway.access.identity import Identity
from headway.api.identity import SCOPE_KEY
from headway.api.problems import problem_response

_TOO_MUCH = "the server is taking in as much as it can; send the request again later"
_RETRY_AFTER = {"retry-after": "1"}
_Holder = tuple[str, str] | None


class BodyLimit:
    """Wraps the application.

    Args:
        app: What answers.
        limit_bytes: Largest body.
        together_bytes: Bodies of all requests that are being answered: some thousand connections
            with a body of the largest size each are more memory than a host has.
        of_one_bytes: Of one user in one workspace, who would else keep all others out with some
            slow requests. The one user of a server without accounts has all of it.
    """

    def __init__(
        self, app: ASGIApp, limit_bytes: int, together_bytes: int, of_one_bytes: int
    ) -> None:
        self._app = app
        self._limit_bytes = limit_bytes
        self._together_bytes = together_bytes
        self._of_one_bytes = of_one_bytes
        self._held_bytes = 0
        self._held_of: Counter[_Holder] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._is_announced_too_large(Headers(scope=scope)):
            response = problem_response(413, self._sentence, request=Request(scope))
            await response(scope, receive, send)
            return
        received_bytes = 0
        holder: _Holder = None

        async def receive_counted() -> Message:
            nonlocal received_bytes, holder
            message = await receive()
            if size := len(message.get("body", b"")):
                # The gate lets nothing be read before it has said whose the request is.
                holder = _holder_of(scope)
                received_bytes += size
                self._hold(holder, size)
            if received_bytes > self._limit_bytes:
                # An HTTPException, because FastAPI answers 400 to any other while it reads a body.
                raise HTTPException(413, self._sentence)
            return message

        try:
            await self._app(scope, receive_counted, send)
        finally:
            self._let_go(holder, received_bytes)

    def _hold(self, holder: _Holder, size: int) -> None:
        self._held_bytes += size
        self._held_of[holder] += size
        if self._held_bytes > self._together_bytes:
            raise HTTPException(503, _TOO_MUCH, headers=_RETRY_AFTER)
        if holder is not None and self._held_of[holder] > self._of_one_bytes:
            text = f"{holder[1]} sends as much as one user may; send the request again later"
            raise HTTPException(429, text, headers=_RETRY_AFTER)

    def _let_go(self, holder: _Holder, size: int) -> None:
        self._held_bytes -= size
        self._held_of[holder] -= size
        if not self._held_of[holder]:
            del self._held_of[holder]

    @property
    def _sentence(self) -> str:
        return f"a request body may have {self._limit_bytes} bytes at most"

    def _is_announced_too_large(self, headers: Headers) -> bool:
        # The server in front has checked that the header is a number.
        return int(headers.get("content-length", "0")) > self._limit_bytes


def _holder_of(scope: Scope) -> _Holder:
    """Whose request it is; None: of somebody unknown, or of the server's one user."""
    caller: Identity | None = scope.get(SCOPE_KEY)
    return None if caller is None or caller.via == "local" else (caller.workspace, caller.user)
