"""What counts as a target that answers (J9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from headway.dispatch.preconditions import HealthClient


@asynccontextmanager
async def answering(status: int) -> AsyncIterator[str]:
    """A server that answers everything with this status."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            f"HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode()
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/health"


@pytest.fixture
async def health() -> AsyncIterator[HealthClient]:
    client = HealthClient()
    yield client
    await client.close()


@pytest.mark.parametrize(
    ("status", "healthy", "answers"),
    [(200, True, True), (204, True, True), (401, False, True), (404, False, True),
     (500, False, False), (503, False, False)],
)  # fmt: skip
async def test_any_answer_is_one_below_500(
    health: HealthClient, status: int, healthy: bool, answers: bool
) -> None:
    """A server that loads its model says 503; one without the page, or behind a key, is up."""
    async with answering(status) as url:
        strict = await health.trouble(url, any_answer=False, verify_tls=True)
        mild = await health.trouble(url, any_answer=True, verify_tls=True)
    assert (strict is None, mild is None) == (healthy, answers)
    if mild is not None:
        assert mild == f"{url} answers with status {status}"


async def test_nobody_there_is_no_answer(health: HealthClient) -> None:
    async with answering(200) as url:
        pass
    said = await health.trouble(url, any_answer=True, verify_tls=False)
    assert said is not None
    assert said.startswith(f"{url} does not answer")
