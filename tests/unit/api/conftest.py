"""A real API on a real socket, over a real store; the tests play the worker themselves."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI

from headway.access.secret_keys import SecretKeys
from headway.api.app import Collaborators, create_app
from headway.api.authenticator import bearer
from headway.api.entrance import Entrance
from headway.api.extension import Extension, ExtensionParts
from headway.api.job_feed import JobFeed
from headway.api.limits import Limits
from headway.api.listening import listening_socket, url_of
from headway.api.live import LiveJobs
from headway.api.overlays import Overlays
from headway.api.premises import Premises
from headway.api.secret_vault import SecretVault
from headway.api.sessions import session_cookie
from headway.api.target_registry import TargetRegistry
from headway.api.web_server import WebServer
from headway.core.clock import SystemClock
from headway.core.statedir import StateDir
from headway.core.states import Outcome
from headway.dispatch.inline_lane import InlineLane, InlineSettings
from headway.dispatch.lane_host import LaneHost
from headway.dispatch.metrics import AttemptMetrics
from headway.dispatch.unix_doorbell import UnixDoorbell
from headway.jobs import load_operations
from headway.jobs.environment import EnvironmentPolicy
from headway.jobs.registry import Registry
from headway.store.attempts import ClaimedJob, Finish
from headway.store.jobs import StoredResult
from headway.store.sqlite.secrets import SqliteSecrets
from headway.store.sqlite.store import SqliteStore
from headway.store.sqlite.targets import SqliteOverlays, SqliteTargets

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
    app: FastAPI

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


@pytest.fixture
def start_full_api(
    tmp_path: Path, limits: Limits
) -> Callable[[], AbstractAsyncContextManager[Api]]:
    """Like `start_api`, with everything that `headway serve` adds: pages, sign-in, load tests."""
    modules = (str(OPERATIONS), "headway.operations.bench")
    return lambda: running_api(tmp_path / "state", limits, [_pages], modules)


def _pages(parts: ExtensionParts) -> APIRouter:
    from headway.cli.bench_arguments import spec_of
    from headway.dashboard.extension import dashboard

    return dashboard(parts, spec_of)


@asynccontextmanager
async def running_api(
    directory: Path,
    limits: Limits,
    extensions: Sequence[Extension] = (),
    modules: Sequence[str] = (str(OPERATIONS),),
) -> AsyncIterator[Api]:
    state_dir, clock = StateDir(directory), SystemClock()
    state_dir.create()
    store, doorbell = SqliteStore(state_dir, clock, random.Random(1)), UnixDoorbell(state_dir)
    await store.open()
    await doorbell.open()
    live = LiveJobs(store, doorbell, clock, limits.backup_poll_s)
    feed = JobFeed(store, doorbell, limits.backup_poll_s)
    registry = load_operations(*modules)
    metrics = AttemptMetrics("api")
    host = LaneHost(store, doorbell, state_dir, metrics, clock, random.Random(2))
    inline = InlineLane(host, registry, InlineSettings(limit=2))
    await inline.open()
    ways = (bearer, session_cookie)
    entrance = Entrance(store.accounts, doorbell, clock, limits.heartbeat_s, ways)
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
        premises=_premises(store, state_dir, registry),
        accounts=store.accounts,
        extensions=extensions,
    )
    app = create_app(parts)
    listening = listening_socket("127.0.0.1", 0)
    url = url_of(listening)
    async with (
        serving(app, listening),
        httpx.AsyncClient(base_url=url, verify=False, timeout=60) as http,
    ):
        yield Api(http, url, store, doorbell, state_dir, live, entrance, app)
        live.stop()
        feed.stop()
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    await inline.close()
    await doorbell.close()
    await store.close()


def _premises(store: SqliteStore, state_dir: StateDir, registry: Registry) -> Premises:
    keys = SecretKeys.of_server(state_dir.root, {})
    return Premises(
        Overlays(SqliteOverlays(store), registry, EnvironmentPolicy()),
        SecretVault(SqliteSecrets(store), keys),
        TargetRegistry(SqliteTargets(store), None),
    )


@asynccontextmanager
async def serving(app: Any, listening: socket.socket) -> AsyncIterator[None]:
    server = WebServer(app)
    task = asyncio.create_task(server.serve([listening]))
    try:
        yield
    finally:
        server.should_exit = True
        await task
