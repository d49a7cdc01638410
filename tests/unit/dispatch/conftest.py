"""A real store and doorbell in a state directory of each test's own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from headway.core.clock import SystemClock
from headway.core.statedir import StateDir
from headway.dispatch.doorbell import WORK, job_topic
from headway.dispatch.lane_host import LaneHost
from headway.dispatch.metrics import AttemptMetrics
from headway.dispatch.unix_doorbell import UnixDoorbell
from headway.store.jobs import JobRow
from headway.store.sqlite.schema import ensure_schema
from headway.store.sqlite.store import SqliteStore
from headway.store.submissions import NewJob

LIMIT_S = 20.0


class Jobs:
    """Submits to a store and waits for what becomes of it."""

    def __init__(self, store: SqliteStore, doorbell: UnixDoorbell) -> None:
        self.store = store
        self.doorbell = doorbell

    async def submit(self, *jobs: NewJob) -> list[str]:
        submitted = await self.store.submit(jobs)
        assert isinstance(submitted, list)
        self.doorbell.ring(WORK)
        return [each.job.id for each in submitted]

    async def get(self, job_id: str) -> JobRow:
        row = await self.store.find(job_id)
        assert isinstance(row, JobRow)
        return row

    async def until(self, job_id: str, holds: Callable[[JobRow], bool]) -> JobRow:
        """Wait until the job is as asked; fails when it never is."""
        async with asyncio.timeout(LIMIT_S):
            with self.doorbell.listen(job_topic(job_id)) as bell:
                while not holds(row := await self.get(job_id)):
                    await bell.wait(0.2)
                return row

    async def ended(self, job_id: str) -> JobRow:
        return await self.until(job_id, lambda row: row.state.is_terminal)


async def eventually(holds: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    """Poll a condition until it holds."""
    async with asyncio.timeout(limit_s):
        while not holds():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.01)


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], Awaitable[None]]:
    return eventually


@pytest.fixture
def state_dir(tmp_path: Path) -> StateDir:
    return StateDir(tmp_path / "state")


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A fresh database; migrating anew for each test takes most of its time."""
    state_dir = StateDir(tmp_path_factory.mktemp("migrated"))
    state_dir.create()
    ensure_schema(state_dir.database, state_dir.writer_lock)
    return state_dir.database.read_bytes()


@pytest.fixture
async def store(state_dir: StateDir, migrated: bytes) -> AsyncIterator[SqliteStore]:
    state_dir.create()
    state_dir.database.write_bytes(migrated)
    store = SqliteStore(state_dir, SystemClock(), random.Random(1))
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def doorbell(state_dir: StateDir) -> AsyncIterator[UnixDoorbell]:
    doorbell = UnixDoorbell(state_dir)
    await doorbell.open()
    yield doorbell
    await doorbell.close()


@pytest.fixture
def host(store: SqliteStore, doorbell: UnixDoorbell, state_dir: StateDir) -> LaneHost:
    return LaneHost(
        store=store,
        doorbell=doorbell,
        state_dir=state_dir,
        metrics=AttemptMetrics("api"),
        clock=SystemClock(),
        rng=random.Random(1),
    )


@pytest.fixture
def jobs(store: SqliteStore, doorbell: UnixDoorbell) -> Jobs:
    return Jobs(store, doorbell)
