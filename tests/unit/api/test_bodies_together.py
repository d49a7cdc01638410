"""What requests bring all together is bounded, and there is room again when they are answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI, Request

from headway.api.body_limit import BodyLimit
from headway.api.problems import install_problem_handlers

TOGETHER_BYTES = 1000


class Slow:
    """An application that has read a request and takes its time."""

    def __init__(self) -> None:
        self.read = asyncio.Semaphore(0)
        self.go = asyncio.Event()

    def application(self) -> FastAPI:
        app = FastAPI()
        install_problem_handlers(app)

        async def take(request: Request) -> int:
            size = len(await request.body())
            self.read.release()
            await self.go.wait()
            return size

        app.add_api_route("/", take, methods=["POST"])
        app.add_middleware(
            BodyLimit, limit_bytes=800, together_bytes=TOGETHER_BYTES, of_one_bytes=TOGETHER_BYTES
        )
        return app


@pytest.fixture
async def slow() -> Slow:
    return Slow()


@pytest.fixture
async def http(slow: Slow) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(slow.application())
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as http:
        yield http


async def test_what_does_not_fit_beside_the_others_is_refused_and_fits_later(
    slow: Slow, http: httpx.AsyncClient
) -> None:
    async with asyncio.timeout(30):
        first = asyncio.create_task(http.post("/", content=b"x" * 600))
        await slow.read.acquire()
        refused = await http.post("/", content=b"x" * 600)
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "1"
        assert "again later" in refused.json()["detail"]
        slow.go.set()
        assert (await first).json() == 600
        assert (await http.post("/", content=b"x" * 600)).json() == 600


async def test_requests_without_a_body_are_answered_meanwhile(
    slow: Slow, http: httpx.AsyncClient
) -> None:
    async with asyncio.timeout(30):
        full = [asyncio.create_task(http.post("/", content=b"x" * 500)) for _ in range(2)]
        for _ in full:
            await slow.read.acquire()
        empty = asyncio.create_task(http.post("/"))
        await slow.read.acquire()
        slow.go.set()
        assert [(await each).json() for each in (*full, empty)] == [500, 500, 0]
