"""Stores with any number of ended jobs, made in seconds (P18).

The ended jobs are copies of jobs that the store itself took in, claimed and ended, row by row in
every table, with ids, sequences and times of their own; so whatever the store writes, the copies
have. `tests/unit/store/test_ended_copies.py` holds them against their originals.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
from pathlib import Path

from headway.core.clock import SystemClock
from headway.core.failure import ErrorInfo
from headway.core.retry import RetryPolicy
from headway.core.statedir import StateDir
from headway.core.states import Outcome
from headway.store.attempts import Finish, RetryLater
from headway.store.jobs import StoredResult, Usage
from headway.store.sqlite.store import SqliteStore
from headway.store.submissions import NewJob

TEMPLATES = 20


async def fill(directory: Path, count: int) -> None:
    """A store with `count` ended jobs in `directory`."""
    state_dir = StateDir(directory)
    store = SqliteStore(state_dir, SystemClock(), random.Random(1))
    await store.open()
    await _end_templates(store)
    await store.close()
    await asyncio.to_thread(multiply, state_dir.database, count)


async def _end_templates(store: SqliteStore) -> None:
    """Jobs with all that a job can have, ended by the store."""
    retry = RetryPolicy(max_attempts=3, retryable=True)
    for number in range(TEMPLATES):
        job = NewJob(
            operation=f"op{number % 7}",
            lane="long" if number % 4 == 0 else "short",
            input_json=f'{{"n": {number}}}',
            labels={"team": f"team{number % 3}"} if number % 2 else {},
            retry=retry,
        )
        await store.submit([job])
        if number % 5 == 0:
            await _end_one(store, number, RetryLater(
                outcome=Outcome.FAILED, delay_s=0.0, reason="again",
                error=ErrorInfo(type="ValueError", message="not yet"),
            ))  # fmt: skip
        await _end_one(store, number, _end(number))


async def _end_one(store: SqliteStore, number: int, end: Finish | RetryLater) -> None:
    [claimed] = await store.claim(f"worker{number % 2}", {"short": 1, "long": 1}, 60)
    assert await store.end_attempt(claimed.claim, end)


def _end(number: int) -> Finish:
    usage = Usage(peak_rss_bytes=30_000_000, cpu_s=0.01, timeline={"claimed": 1.0, "ended": 2.0})
    if number % 10 == 9:
        error = ErrorInfo(type="ValueError", message="no", traceback="Traceback ...")
        return Finish(outcome=Outcome.FAILED, error=error, usage=usage, kept_bytes=100)
    result = StoredResult(json=f'{{"answer": {number}}}')
    return Finish(outcome=Outcome.SUCCEEDED, result=result, usage=usage, kept_bytes=100)


def multiply(database: Path, count: int) -> None:
    """Copy the ended jobs until there are `count`, in every table that belongs to a job.

    The tables and their columns are taken from the schema. What the triggers would have written is
    in the templates already, so they are put aside; the totals of `ended_totals` are made anew.
    """
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as connection:
        for pragma in ("synchronous = OFF", "cache_size = -400000", "temp_store = MEMORY"):
            connection.execute(f"PRAGMA {pragma}")
        have = connection.execute("SELECT count(*) FROM jobs").fetchone()[0]
        connection.execute("BEGIN IMMEDIATE")
        triggers = connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("CREATE TEMP TABLE copies (shift INTEGER PRIMARY KEY)")
        connection.executemany(
            "INSERT INTO copies VALUES (?)", ((shift,) for shift in range(have, count, have))
        )
        for table in _tables_of_jobs(connection):
            _copy(connection, table, count)
        connection.execute("DELETE FROM ended_totals")
        connection.execute(
            "INSERT INTO ended_totals (operation, outcome, jobs)"
            " SELECT operation, outcome, count(*) FROM jobs WHERE outcome IS NOT NULL GROUP BY 1, 2"
        )
        for _, sql in triggers:
            connection.execute(sql)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _tables_of_jobs(connection: sqlite3.Connection) -> list[str]:
    """Every table with a row, or several, for a job."""
    names = [
        name for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
    ]  # fmt: skip
    return [name for name in names if "sequence" in _columns(connection, name)]


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [each[1] for each in connection.execute(f"PRAGMA main.table_info({table})")]


def _copy(connection: sqlite3.Connection, table: str, count: int) -> None:
    columns = _columns(connection, table)
    chosen = ", ".join(_shifted(table, column) for column in columns)
    connection.execute(
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {chosen} FROM copies CROSS JOIN"
        f" (SELECT * FROM {table} WHERE sequence <= {TEMPLATES} ORDER BY sequence) AS source"
        f" WHERE source.sequence + shift <= {count}"
    )


def _shifted(table: str, column: str) -> str:
    if column == "sequence":
        return "source.sequence + shift"
    if (table, column) == ("jobs", "id"):
        # As long as a real one, and ascending with the sequence as those do.
        return "printf('%.16s%010d', source.id, source.sequence + shift)"
    if column.endswith("_us"):
        return f"source.{column} + shift"
    return f"source.{column}"
