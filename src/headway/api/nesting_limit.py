"""Refuses JSON that is nested deeper than the job's process could read it."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headway.core.nesting import MAX_LEVELS, is_nested_deeper

_REFUSAL = (
    f"the body is nested deeper than {MAX_LEVELS} levels of arrays and objects: send what is deep"
    " as a text that holds JSON, or make it flat"
)


class NestingLimit:
    """Wraps the application, all routes of it: each would find out elsewhere, or too late.

    Python's own parser and pydantic's follow to different depths, so a job was accepted that its
    process could not read.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _is_json(scope):
            await self._app(scope, receive, send)
            return
        pieces: list[bytes] = []

        async def receive_checked() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                pieces.append(message.get("body", b""))
                if not message.get("more_body", False):
                    _check(b"".join(pieces))
                    pieces.clear()
            return message

        await self._app(scope, receive_checked, send)


def _is_json(scope: Scope) -> bool:
    # In small letters: the names of media types are the same in any (RFC 9110 section 8.3.1).
    return "json" in Headers(scope=scope).get("content-type", "").lower()


def _check(body: bytes) -> None:
    if is_nested_deeper(body, MAX_LEVELS):
        # An HTTPException, because FastAPI answers 400 to any other while it reads a body.
        raise HTTPException(422, _REFUSAL)
