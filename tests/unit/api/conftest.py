"""A real API on a real socket, over a real store; the tests play the worker themselves."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from headway.api.app import Collaborators, create_app
from headway.api.entrance import Entrance
from headway.api.job_feed import JobFeed
from headway.api.limits import Limits
from headway.api.listening import listening_socket, url_of
from headway.api.live import LiveJobs
from headway.api.web_server import WebServer
from headway.core.clock import SystemClock
from headway.core.statedir import StateDir
from headway.core.states import Outcome
from headway.dispatch.inline_lane import InlineLane, InlineSettings
from headway.dispatch.lane_host import LaneHost
from headway.dispatch.metrics import AttemptMetrics
from headway.dispatch.unix_doorbell import UnixDoorbell
from headway.jobs import load_operations
from headway.store.sqlite.store import SqliteStore
from headway.store.values import ClaimedJob, Finish, StoredResult

OPERATIONS = Path(__file__).parent / "operations_for_api.py"
LANES = ("long", "short")


@dataclass(frozen=True)
class Api:
    """The running API and what a worker would have in its hands."""

    http: httpx.AsyncClient
    url: str
    store: SqliteStore
    doorbell: UnixDoorbell
    state_dir: StateDir
    live: LiveJobs
    entrance: Entrance

    async def submit(self, operation: str = "train", **body: Any) -> str:
        answer = await self.http.post(f"/v1/operations/{operation}", json=body)
        assert answer.status_code == 202, answer.text
        job_id: str = answer.json()["id"]
        return job_id

    async def claim(self) -> ClaimedJob:
        [claimed] = await self.store.claim("worker-1", dict.fromkeys(LANES, 1), 60.0)
        self.ring(claimed.job.id)
        return claimed

    async def finish(self, claimed: ClaimedJob, result_json: str = "null") -> None:
        finish = Finish(outcome=Outcome.SUCCEEDED, result=StoredResult(json=result_json))
        assert await self.store.end_attempt(claimed.claim, finish) is not None
        self.ring(claimed.job.id)

    def write_log(self, job_id: str, attempt: int, data: bytes, *, ring: bool = True) -> None:
        path = self.state_dir.attempt_log(job_id, attempt)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(data)
        if ring:
            self.doorbell.ring(f"log:{job_id}:{attempt}")

    def ring(self, job_id: str) -> None:
        self.doorbell.ring(f"job:{job_id}")


@pytest.fixture
def limits() -> Limits:
    return Limits(body_bytes=64 * 1024, heartbeat_s=0.2, backup_poll_s=1.0)


@pytest.fixture
def start_api(tmp_path: Path, limits: Limits) -> Callable[[], AbstractAsyncContextManager[Api]]:
    """Starts an API over one state directory; again, after the last one has stopped."""
    return lambda: running_api(tmp_path / "state", limits)


@pytest.fixture
async def api(
    start_api: Callable[[], AbstractAsyncContextManager[Api]],
) -> AsyncIterator[Api]:
    async with start_api() as running:
        yield running


@asynccontextmanager
async def running_api(directory: Path, limits: Limits) -> AsyncIterator[Api]:
    state_dir, clock = StateDir(directory), SystemClock()
    state_dir.create()
    store, doorbell = SqliteStore(state_dir, clock, random.Random(1)), UnixDoorbell(state_dir)
    await store.open()
    await doorbell.open()
    live = LiveJobs(store, doorbell, clock, limits.backup_poll_s)
    feed = JobFeed(store, doorbell, limits.backup_poll_s)
    registry = load_operations(str(OPERATIONS))
    metrics = AttemptMetrics("api")
    host = LaneHost(store, doorbell, state_dir, metrics, clock, random.Random(2))
    inline = InlineLane(host, registry, InlineSettings(limit=2))
    await inline.open()
    entrance = Entrance(store.accounts, doorbell, clock, limits.heartbeat_s)
    watching = asyncio.create_task(entrance.run())
    parts = Collaborators(
        registry,
        store,
        doorbell,
        state_dir,
        live,
        feed,
        inline,
        entrance,
        metrics.registry,
        limits=limits,
    )
    listening = listening_socket("127.0.0.1", 0)
    url = url_of(listening)
    async with (
        serving(create_app(parts), listening),
        httpx.AsyncClient(base_url=url, verify=False, timeout=60) as http,
    ):
        yield Api(http, url, store, doorbell, state_dir, live, entrance)
        live.stop()
        feed.stop()
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    await inline.close()
    await doorbell.close()
    await store.close()


@asynccontextmanager
async def serving(app: Any, listening: socket.socket) -> AsyncIterator[None]:
    server = WebServer(app)
    task = asyncio.create_task(server.serve([listening]))
    try:
        yield
    finally:
        server.should_exit = True
        await task
