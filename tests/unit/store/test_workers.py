"""The threads that own the connections."""

from __future__ import annotations

import asyncio
import fcntl
import os
import sqlite3
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from headway.core.errors import InternalError, StoreUnavailable
from headway.store.sqlite import workers
from headway.store.sqlite.connections import connect_reader, connect_writer
from headway.store.sqlite.workers import ConnectionThread, WriterThread


def table(path: Path) -> sqlite3.Connection:
    connection = connect_writer(path)
    connection.execute("CREATE TABLE IF NOT EXISTS t (x INTEGER PRIMARY KEY)")
    return connection


class CommitCounter:
    """Counts the commits of a connection by its trace."""

    def __init__(self) -> None:
        self.commits = 0

    def connect(self, path: Path) -> sqlite3.Connection:
        connection = table(path)
        connection.set_trace_callback(self._trace)
        return connection

    def _trace(self, statement: str) -> None:
        self.commits += statement == "COMMIT"


@pytest.fixture
async def writer(tmp_path: Path) -> AsyncIterator[WriterThread]:
    thread = WriterThread(partial(table, tmp_path / "db"), tmp_path / "lock")
    thread.start()
    yield thread
    await thread.close()


def insert(value: int, connection: sqlite3.Connection) -> int:
    connection.execute("INSERT INTO t VALUES (?)", (value,))
    return value


def count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM t").fetchone()[0])


async def test_writes_that_wait_share_a_commit(tmp_path: Path) -> None:
    counter = CommitCounter()
    writer = WriterThread(partial(counter.connect, tmp_path / "db"), tmp_path / "lock")
    writer.start()
    values = await asyncio.gather(*(writer.run(partial(insert, n)) for n in range(300)))
    assert values == list(range(300))
    assert counter.commits < 100
    await writer.close()


async def test_a_failing_write_undoes_itself_alone(writer: WriterThread) -> None:
    def insert_then_fail(connection: sqlite3.Connection) -> None:
        insert(1000, connection)
        raise ValueError("mine")

    answers = await asyncio.gather(
        writer.run(partial(insert, 1)),
        writer.run(insert_then_fail),
        writer.run(partial(insert, 1)),
        writer.run(partial(insert, 2)),
        return_exceptions=True,
    )
    assert answers[0] == 1
    assert isinstance(answers[1], ValueError)
    assert isinstance(answers[2], InternalError)
    assert answers[3] == 2
    assert await writer.run(count) == 2


async def test_writers_of_two_processes_take_turns(tmp_path: Path) -> None:
    """Four writers with synchronous=FULL starve each other by SQLite's own busy handler."""
    code = (
        "import asyncio, sys; from functools import partial; from pathlib import Path\n"
        "from headway.store.sqlite.connections import connect_writer\n"
        "from headway.store.sqlite.workers import WriterThread\n"
        "path, first = Path(sys.argv[1]), int(sys.argv[2])\n"
        "async def main():\n"
        "    w = WriterThread(partial(connect_writer, path / 'db'), path / 'lock'); w.start()\n"
        "    for n in range(100):\n"
        "        row = (first + n,)\n"
        "        await w.run(lambda c: c.execute('INSERT INTO t VALUES (?)', row) and None)\n"
        "    await w.close()\n"
        "asyncio.run(main())\n"
    )
    table(tmp_path / "db").close()
    children = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(tmp_path), str(first))
        for first in (1000, 2000, 3000)
    ]
    async with asyncio.timeout(60):
        assert [await child.wait() for child in children] == [0, 0, 0]
    connection = table(tmp_path / "db")
    assert count(connection) == 300
    connection.close()


async def test_a_killed_holder_frees_the_lock(writer: WriterThread, tmp_path: Path) -> None:
    code = (
        "import fcntl, os, sys, time; fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT);"
        "fcntl.flock(fd, fcntl.LOCK_EX); print('held', flush=True); time.sleep(60)"
    )
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, str(tmp_path / "lock"), stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    await child.stdout.readline()
    blocked = asyncio.create_task(writer.run(partial(insert, 1)))
    done, _ = await asyncio.wait({blocked}, timeout=0.2)
    assert not done
    child.kill()
    assert await blocked == 1
    await child.wait()


async def test_no_wait_is_without_a_deadline(
    writer: WriterThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "TIMEOUT_S", 0.2)
    descriptor = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(StoreUnavailable, match="did not answer"):
        await writer.run(partial(insert, 1))
    monkeypatch.setattr(workers, "TIMEOUT_S", 60.0)
    waiting = asyncio.create_task(writer.run(partial(insert, 2)))
    await asyncio.sleep(0)
    os.close(descriptor)
    assert await waiting == 2


async def test_a_write_that_was_given_up_before_it_began_does_not_happen(
    writer: WriterThread, tmp_path: Path
) -> None:
    descriptor = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    first = asyncio.create_task(writer.run(partial(insert, 1)))
    given_up = asyncio.create_task(writer.run(partial(insert, 2)))
    await asyncio.sleep(0.05)
    given_up.cancel()
    await asyncio.wait({given_up})
    os.close(descriptor)
    assert await first == 1
    assert await writer.run(count) == 1


async def test_too_much_waiting_work_is_refused(
    writer: WriterThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "MAX_WAITING", 0)
    with pytest.raises(StoreUnavailable, match="more work than it can do"):
        await writer.run(count)


async def test_close_finishes_what_was_accepted(tmp_path: Path) -> None:
    writer = WriterThread(partial(table, tmp_path / "db"), tmp_path / "lock")
    writer.start()
    pending = [asyncio.create_task(writer.run(partial(insert, n))) for n in range(50)]
    await asyncio.sleep(0)
    await writer.close()
    assert len(await asyncio.gather(*pending)) == 50
    with pytest.raises(StoreUnavailable, match="closed"):
        await writer.run(count)


async def test_a_reader_cannot_write(tmp_path: Path) -> None:
    table(tmp_path / "db").close()
    reader = ConnectionThread("reader", partial(connect_reader, tmp_path / "db"))
    reader.start()
    with pytest.raises(StoreUnavailable, match="readonly"):
        await reader.run(partial(insert, 1))
    assert await reader.run(count) == 0
    await reader.close()
