"""What requests bring all together is bounded, and there is room again when they are answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from slow_application import Slow

TOGETHER_BYTES = 1000


@pytest.fixture
async def slow() -> Slow:
    return Slow(TOGETHER_BYTES, TOGETHER_BYTES)


@pytest.fixture
async def http(slow: Slow) -> AsyncIterator[httpx.AsyncClient]:
    async with slow.asked() as http:
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
