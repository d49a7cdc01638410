"""A million ended jobs are made by copying: the copies must be what the store writes (P18)."""

from __future__ import annotations

import importlib.util
import random
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from headway.core.clock import SystemClock
from headway.core.statedir import StateDir
from headway.store.jobs import JobQuery, JobRow
from headway.store.sqlite.store import SqliteStore

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "jobs" / "ended_jobs.py"
COUNT = 130
OF_NO_JOB = {"ended_totals", "pending_totals", "shares"}
"""Tables that grow with jobs, with rows that are not one job's."""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ended_jobs", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
async def filled(script: ModuleType, tmp_path: Path) -> AsyncIterator[SqliteStore]:
    await script.fill(tmp_path, COUNT)
    store = SqliteStore(StateDir(tmp_path), SystemClock(), random.Random(1))
    await store.open()
    yield store
    await store.close()


async def all_jobs(store: SqliteStore) -> dict[int, JobRow]:
    page = await store.list_jobs(JobQuery(limit=COUNT * 2))
    return {job.sequence: job for job in page.jobs}


def moved(job: JobRow, by: int) -> JobRow:
    """The job as its copy should be, but for its id."""
    shift = timedelta(microseconds=by)
    times = {
        name: value + shift
        for name in ("created_at", "started_at", "ended_at", "run_at", "cancel_requested_at")
        if (value := getattr(job, name)) is not None
    }
    return msgspec.structs.replace(job, sequence=job.sequence + by, id="", **times)


async def told(store: SqliteStore, job: JobRow) -> list[Any]:
    """Everything else that the store tells of a job, without its times."""
    events = [
        msgspec.structs.replace(event, at=job.created_at) for event in await store.events(job.id)
    ]
    attempts = [
        msgspec.structs.replace(each, started_at=job.created_at, ended_at=job.created_at)
        for each in await store.attempts(job.id)
    ]
    return [
        await store.payload(job.id),
        await store.result(job.id),
        [(event.number, event.kind, event.attempt, event.data_json) for event in events],
        [(each.attempt, each.owner, each.outcome, each.error, each.usage) for each in attempts],
    ]


async def test_each_copy_tells_what_its_original_tells(
    filled: SqliteStore, script: ModuleType
) -> None:
    jobs = await all_jobs(filled)
    assert sorted(jobs) == list(range(1, COUNT + 1))
    assert len({job.id for job in jobs.values()}) == COUNT
    assert all(job.state.is_terminal for job in jobs.values())
    for sequence, job in jobs.items():
        original = jobs[(sequence - 1) % script.TEMPLATES + 1]
        by = sequence - original.sequence
        assert msgspec.structs.replace(job, id="") == moved(original, by)
        assert await told(filled, job) == await told(filled, original)


async def test_totals_and_labels_count_the_copies(filled: SqliteStore) -> None:
    jobs = (await all_jobs(filled)).values()
    ended = (await filled.counts()).ended
    assert sum(each.jobs for each in ended) == COUNT
    for each in ended:
        same = [
            job for job in jobs
            if (job.operation, job.outcome) == (each.operation, each.outcome)
        ]  # fmt: skip
        assert each.jobs == len(same)
    labelled = await filled.list_jobs(JobQuery(labels={"team": "team1"}, limit=COUNT))
    assert {job.id for job in labelled.jobs} == {
        job.id for job in jobs if job.labels.get("team") == "team1"
    }


async def rows_by_table(directory: Path) -> dict[str, int]:
    with closing(sqlite3.connect(StateDir(directory).database)) as connection:
        names = [
            name for (name,) in connection.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            )
        ]  # fmt: skip
        return {
            name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names
        }


async def test_no_table_of_jobs_and_no_trigger_is_left_out(
    filled: SqliteStore, tmp_path: Path
) -> None:
    empty = SqliteStore(StateDir(tmp_path / "empty"), SystemClock(), random.Random(1))
    await empty.open()
    await empty.close()
    before = await rows_by_table(tmp_path / "empty")
    after = await rows_by_table(tmp_path)
    grown = {name for name, rows in after.items() if rows > before[name]}
    with (
        closing(sqlite3.connect(StateDir(tmp_path).database)) as connection,
        closing(sqlite3.connect(StateDir(tmp_path / "empty").database)) as reference,
    ):
        for name in grown - OF_NO_JOB:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
            # A job's table without a sequence would not have been copied.
            assert "sequence" in columns, name
        every = "SELECT type, name, sql FROM sqlite_schema ORDER BY name"
        assert connection.execute(every).fetchall() == reference.execute(every).fetchall()
