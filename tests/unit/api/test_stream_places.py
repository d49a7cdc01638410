"""N5: one caller can have so many live streams and no more, and hanging up frees the place."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from headway.api.limits import Limits

PATIENCE_S = 30.0


@pytest.fixture
def limits() -> Limits:
    return Limits(heartbeat_s=0.2, backup_poll_s=1.0, streams_per_user=2)


@pytest.mark.timeout(60)
async def test_the_third_of_two_streams_is_refused_until_one_is_closed(api: Any) -> None:
    job_id = await api.submit(input={"model": "x"})
    paths = ("/v1/jobs/stream", f"/v1/jobs/{job_id}/logs/stream")
    pieces = []  # an iterator that nobody holds is closed, and its connection with it
    async with AsyncExitStack() as open_streams:
        for path in paths:
            stream = await open_streams.enter_async_context(api.http.stream("GET", path))
            assert stream.status_code == 200
            pieces.append(stream.aiter_bytes())
            await anext(pieces[-1])  # it runs
        for path in paths:
            refused = await api.http.get(path)
            assert refused.status_code == 429
            assert refused.headers["retry-after"]
            assert "2 live streams" in refused.json()["detail"]
        assert (await api.http.get("/v1/jobs")).status_code == 200
    async with asyncio.timeout(PATIENCE_S):
        status = 429
        while status == 429:
            async with api.http.stream("GET", paths[0]) as stream:
                status = stream.status_code
    assert status == 200
