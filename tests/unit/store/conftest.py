"""A migrated SQLite database for each test."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headway.core.clock import ManualClock
from headway.core.statedir import StateDir
from headway.store.sqlite.store import SqliteStore


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2026, 11, 30, 12, 0, tzinfo=UTC), monotonic_ns=10**15)


@pytest.fixture
def state_dir(tmp_path: Path) -> StateDir:
    return StateDir(tmp_path / "state")


@pytest.fixture
async def store(state_dir: StateDir, clock: ManualClock) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(state_dir, clock, random.Random(1))
    await store.open()
    yield store
    await store.close()
