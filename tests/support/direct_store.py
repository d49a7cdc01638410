"""A store without a server, on a clock that stands until it is told to go."""

from __future__ import annotations

import random
import tempfile
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from headway.core.clock import ManualClock
from headway.core.statedir import StateDir
from headway.store.attempts import ClaimedJob
from headway.store.jobs import JobRow
from headway.store.limits import QueueLimits
from headway.store.sqlite.schema import ensure_schema
from headway.store.sqlite.store import SqliteStore
from headway.store.submissions import NewJob

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


@cache
def migrated() -> bytes:
    """An empty database; migrating one for each test takes longer than most of them."""
    with tempfile.TemporaryDirectory() as directory:
        state_dir = StateDir(Path(directory))
        state_dir.create()
        ensure_schema(state_dir.database, state_dir.writer_lock)
        return state_dir.database.read_bytes()


def opened(
    directory: Path,
    clock: ManualClock,
    max_queued: int | None = None,
    *,
    max_bytes: int | None = None,
) -> SqliteStore:
    """The store of a directory, which is made when it is not there."""
    state_dir = StateDir(directory)
    state_dir.create()
    if not state_dir.database.exists():
        state_dir.database.write_bytes(migrated())
    limits = QueueLimits(jobs=max_queued, size_bytes=max_bytes)
    return SqliteStore(state_dir, clock, random.Random(1), queue_limits=limits)


def job(workspace: str = "lab", user: str = "local", **options: Any) -> NewJob:
    return NewJob(
        operation="op", lane="long", input_json="{}", workspace=workspace, created_by=user,
        **options,
    )  # fmt: skip


async def submit(store: SqliteStore, *jobs: NewJob) -> list[JobRow]:
    answer = await store.submit(jobs)
    assert isinstance(answer, list), answer
    return [each.job for each in answer]


async def claim(store: SqliteStore, count: int = 1) -> list[ClaimedJob]:
    return await store.claim("w", {"long": count}, 60.0)
