"""The `wait` parameter of requests, and waiting no longer than the client does."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from contextlib import suppress
from typing import Annotated, Any, TypeVar

from fastapi import Query, Request

from headway.client.models import MAX_WAIT_S

T = TypeVar("T")

_WAIT = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)(ms|s|m)?")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, None: 1.0}

WaitParameter = Annotated[
    str | None,
    Query(
        pattern=rf"^{_WAIT.pattern}$",
        description=(
            "Wait so long for the job to end, such as `30s` or `500ms`; cut to "
            f"{MAX_WAIT_S:.0f} s. Without it the answer comes at once."
        ),
    ),
]


def wait_seconds(text: str | None) -> float:
    """Seconds of a `wait` parameter; longer than the server allows is cut to that."""
    match = _WAIT.fullmatch(text or "0")
    assert match is not None, "the route has checked the pattern"
    return min(MAX_WAIT_S, float(match[1]) * _UNIT_S[match[2]])


async def unless_disconnected(request: Request, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of `work`, or None when the client went away first and `work` was cancelled.

    Nobody then waits for an answer that nobody will read. The body of `request` must have been
    read before.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return await working if working.done() else None
    finally:
        for task in (working, leaving):
            task.cancel()
        for task in (working, leaving):
            with suppress(asyncio.CancelledError):
                await task


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
