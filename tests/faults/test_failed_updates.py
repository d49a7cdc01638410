"""Trap 38: a status update that failed must not make its own retry look like a duplicate.

There is one copy of a job's state, its row. An update runs within a transaction; when its commit
fails, everything that the update did is undone with it, the marks by which a repetition would be
recognised included: the fence of an attempt and the idempotency key of a submission.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from headway.core.clock import SystemClock
from headway.core.errors import StoreUnavailable
from headway.core.statedir import StateDir
from headway.core.states import JobState, Outcome
from headway.store.attempts import Finish
from headway.store.jobs import JobRow, Progress, StoredResult
from headway.store.sqlite import store as store_module
from headway.store.sqlite.connections import connect_writer
from headway.store.sqlite.store import SqliteStore
from headway.store.submissions import Idempotency, NewJob

DONE = Finish(outcome=Outcome.SUCCEEDED, result=StoredResult(json="42"))


class BrittleConnection:
    """A connection whose next commit finds the disk full, when it is told so."""

    def __init__(self, path: Path) -> None:
        self._real = connect_writer(path)
        self.commit_fails = False

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if sql == "COMMIT" and self.commit_fails:
            self.commit_fails = False
            raise sqlite3.OperationalError("database or disk is full")
        return self._real.execute(sql, *parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@pytest.fixture
def writers(monkeypatch: pytest.MonkeyPatch) -> list[BrittleConnection]:
    made: list[BrittleConnection] = []

    def brittle(path: Path) -> BrittleConnection:
        made.append(BrittleConnection(path))
        return made[-1]

    monkeypatch.setattr(store_module, "connect_writer", brittle)
    return made


@pytest.fixture
async def store(tmp_path: Path, writers: list[BrittleConnection]) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(StateDir(tmp_path / "state"), SystemClock(), random.Random(1))
    await store.open()
    yield store
    await store.close()


async def submitted(store: SqliteStore, **fields: Any) -> JobRow:
    answer = await store.submit([NewJob(operation="x", lane="long", input_json="{}", **fields)])
    assert isinstance(answer, list)
    return answer[0].job


async def test_an_end_whose_commit_failed_is_stored_when_it_is_tried_again(
    store: SqliteStore, writers: list[BrittleConnection]
) -> None:
    job = await submitted(store)
    (claimed,) = await store.claim("w", {"long": 1}, 60)
    writers[0].commit_fails = True
    with pytest.raises(StoreUnavailable, match="full"):
        await store.end_attempt(claimed.claim, DONE)
    row = await store.find(job.id)
    assert isinstance(row, JobRow)
    assert row.state is JobState.RUNNING
    ended = await store.end_attempt(claimed.claim, DONE)
    assert ended is not None, "the retry was taken for a duplicate"
    assert ended.outcome is Outcome.SUCCEEDED
    assert [event.kind for event in await store.events(job.id)].count("ended") == 1
    assert await store.end_attempt(claimed.claim, DONE) is None, "a true duplicate is refused"


async def test_a_submission_whose_commit_failed_leaves_no_key_behind(
    store: SqliteStore, writers: list[BrittleConnection]
) -> None:
    key = Idempotency(key="nightly", fingerprint="f")
    writers[0].commit_fails = True
    with pytest.raises(StoreUnavailable):
        await submitted(store, idempotency=key)
    first = await submitted(store, idempotency=key)
    again = await submitted(store, idempotency=key)
    assert first.id == again.id
    assert (await store.claim("w", {"long": 9}, 60))[0].job.id == first.id


async def test_whoever_shared_the_failed_commit_is_told_and_may_try_again(
    store: SqliteStore, writers: list[BrittleConnection]
) -> None:
    """Cancel and progress: both were done in the transaction, neither is on the disk."""
    job = await submitted(store)
    (claimed,) = await store.claim("w", {"long": 1}, 60)
    writers[0].commit_fails = True
    with pytest.raises(StoreUnavailable):
        await store.progress(claimed.claim, Progress(fraction=0.5))
    assert await store.progress(claimed.claim, Progress(fraction=0.5))
    writers[0].commit_fails = True
    with pytest.raises(StoreUnavailable):
        await store.request_cancel(job.id, "me")
    assert await store.cancel_requested("w") == []
    await store.request_cancel(job.id, "me")
    assert await store.cancel_requested("w") == [claimed.claim]
    kinds = [event.kind for event in await store.events(job.id)]
    assert kinds.count("cancel_requested") == 1
