"""Signs of life come while the loop turns and the store answers, and only then."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from headway.core.errors import StoreUnavailable
from headway.dispatch.service_manager import ServiceManager
from headway.dispatch.service_watch import ServiceWatch

WATCHDOG_S = 0.2
DEADLINE_S = 60.0


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as manager:
        manager.bind(str(tmp_path / "notify"))
        yield manager


@asynccontextmanager
async def watching(
    listening: socket.socket, read: Callable[[], Awaitable[object]] | None
) -> AsyncIterator[asyncio.Task[None]]:
    manager = ServiceManager(listening.getsockname(), WATCHDOG_S)
    task = asyncio.create_task(ServiceWatch(manager, read).run())
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def told(listening: socket.socket) -> str:
    async with asyncio.timeout(DEADLINE_S):
        data = await asyncio.get_running_loop().sock_recv(listening, 4096)
    return data.decode()


async def test_without_a_watchdog_there_is_nothing_to_do(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await ServiceWatch(ServiceManager(str(tmp_path / "notify"))).run()


async def test_a_turning_loop_is_enough_where_there_is_no_store(listening: socket.socket) -> None:
    async with watching(listening, None):
        assert [await told(listening) for _ in range(3)] == ["WATCHDOG=1"] * 3


async def test_a_read_that_hangs_is_told_once_and_no_sign_of_life_comes_until_it_answers(
    listening: socket.socket, tmp_path: Path
) -> None:
    asked, answer = 0, asyncio.Event()

    async def read() -> None:
        nonlocal asked
        asked += 1
        await answer.wait()

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as clock:
        clock.bind(str(tmp_path / "clock"))
        async with watching(listening, read), watching(clock, None):
            assert "does not answer" in await told(listening)
            for _ in range(4):  # in the time of two patiences
                await told(clock)
            assert asked == 1, "questions are not heaped up"
            answer.set()
            assert await told(listening) == "STATUS="
            assert await told(listening) == "WATCHDOG=1"


async def test_a_read_that_is_refused_is_tried_again(listening: socket.socket) -> None:
    refusals = ["the disk is gone", "still gone"]

    async def read() -> None:
        if refusals:
            raise StoreUnavailable(refusals.pop(0))

    async with watching(listening, read):
        assert "the disk is gone" in await told(listening)
        assert [await told(listening), await told(listening)] == ["STATUS=", "WATCHDOG=1"]
        assert not refusals


async def test_it_ends_when_cancelled_also_with_a_question_open(listening: socket.socket) -> None:
    ended = asyncio.Event()

    async def read() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with watching(listening, read) as task:
        await told(listening)
    assert task.cancelled()
    assert ended.is_set()
