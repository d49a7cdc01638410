"""What one user's requests bring all together leaves room for the others'."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from slow_application import Slow
from starlette.types import ASGIApp, Receive, Scope, Send

from headway.access.identity import LOCAL, Identity
from headway.access.roles import Role
from headway.api.identity import SCOPE_KEY

PEOPLE = {
    "mal": Identity("mal", "red", Role.USER),
    "ben": Identity("ben", "blue", Role.USER),
    "local": LOCAL,
}


class Entrance:
    """Says who asks when the body is not read yet, as the gate of a server does."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = next((value.decode() for key, value in scope["headers"] if key == b"who"), None)
        if name is not None:
            scope[SCOPE_KEY] = PEOPLE[name]
        await self._app(scope, receive, send)


@pytest.fixture
async def slow() -> Slow:
    return Slow(together_bytes=4000, of_one_bytes=1000, entrance=Entrance)


@pytest.fixture
async def http(slow: Slow) -> AsyncIterator[httpx.AsyncClient]:
    async with slow.asked() as http:
        yield http


def post(http: httpx.AsyncClient, who: str, size: int) -> asyncio.Task[httpx.Response]:
    return asyncio.create_task(http.post("/", content=b"x" * size, headers={"who": who}))


async def test_one_who_holds_its_share_is_refused_and_others_are_not(
    slow: Slow, http: httpx.AsyncClient
) -> None:
    async with asyncio.timeout(60):
        held = post(http, "mal", 800)
        await slow.read.acquire()
        refused = await post(http, "mal", 300)
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "1"
        assert "mal" in refused.json()["detail"]
        others = [post(http, "ben", 800), post(http, "mal", 100)]
        for _ in others:
            await slow.read.acquire()
        slow.go.set()
        assert [(await each).json() for each in (held, *others)] == [800, 800, 100]


async def test_there_is_room_again_when_its_requests_are_answered(
    slow: Slow, http: httpx.AsyncClient
) -> None:
    async with asyncio.timeout(60):
        slow.go.set()
        for _ in range(5):
            assert (await post(http, "mal", 800)).json() == 800


async def test_the_one_user_of_a_server_without_accounts_has_all_of_it(
    slow: Slow, http: httpx.AsyncClient
) -> None:
    async with asyncio.timeout(60):
        held = [post(http, "local", 800) for _ in range(4)]
        for _ in held:
            await slow.read.acquire()
        slow.go.set()
        assert [(await each).json() for each in held] == [800] * 4
