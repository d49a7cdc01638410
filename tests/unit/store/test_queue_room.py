"""Room in the queue is known without a count as long as there is plenty."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headway.core.clock import ManualClock
from headway.store.limits import QueueLimits
from headway.store.sqlite.connections import connect_writer
from headway.store.sqlite.limits import QueueFullError
from headway.store.sqlite.queries import load_queries
from headway.store.sqlite.queue_room import Amount, QueueRoom
from headway.store.sqlite.schema import ensure_schema
from headway.store.sqlite.transaction import LimitBooks, Transaction


class Queue:
    """A database in which numbers of jobs wait, and how many statements were run on it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        clock = ManualClock(datetime(2026, 12, 1, tzinfo=UTC))
        self.transaction = Transaction(connection, load_queries(), clock, LimitBooks())
        self.statements = 0
        self._connection = connection
        connection.set_trace_callback(self._count)

    def now_has(self, waiting: int, size_bytes: int = 0) -> None:
        before = self.statements
        self._connection.execute(
            "INSERT OR REPLACE INTO pending_totals (workspace, user, jobs, bytes)"
            " VALUES ('w', 'u', ?, ?)",
            (waiting, size_bytes),
        )
        self.statements = before

    def _count(self, statement: str) -> None:
        self.statements += 1


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    path = tmp_path / "headway.db"
    ensure_schema(path, tmp_path / "headway.db.writer")
    with closing(connect_writer(path)) as connection:
        yield Queue(connection)


def jobs(number: int) -> Amount:
    return Amount(number, 0)


def test_below_the_limit_nothing_is_counted_but_once(queue: Queue) -> None:
    room = QueueRoom(QueueLimits(jobs=10_000))
    queue.now_has(500)
    room.check(queue.transaction, jobs(500))
    assert queue.statements == 1
    for _ in range(9_500):
        room.check(queue.transaction, jobs(1))
    assert queue.statements == 1
    queue.now_has(10_000)
    room.check(queue.transaction, jobs(0))
    room.check(queue.transaction, jobs(1))
    assert queue.statements == 2, "there may be more than the limit now"


def test_a_count_that_finds_room_is_good_for_as_many_jobs_again(queue: Queue) -> None:
    """The number that is kept only grows; what has been done meanwhile is found by the count."""
    room = QueueRoom(QueueLimits(jobs=1_000))
    queue.now_has(1)
    for _ in range(10_000):
        room.check(queue.transaction, jobs(1))
    assert queue.statements <= 12


def test_a_full_queue_is_counted_each_time_and_taken_from_once_there_is_room(queue: Queue) -> None:
    room = QueueRoom(QueueLimits(jobs=10))
    queue.now_has(11)
    for _ in range(2):
        with pytest.raises(QueueFullError) as refused:
            room.check(queue.transaction, jobs(1))
        assert (refused.value.refusal.waiting, refused.value.refusal.limit) == (10, 10)
    queue.now_has(10)
    room.check(queue.transaction, jobs(1))


def test_bytes_are_counted_as_seldom_as_jobs_and_refused_as_exactly(queue: Queue) -> None:
    room = QueueRoom(QueueLimits(jobs=10_000, size_bytes=1_000))
    queue.now_has(1, 1)
    for _ in range(1_000):
        room.check(queue.transaction, Amount(1, 1))
    assert queue.statements == 1
    room.check(queue.transaction, Amount(1, 1))
    assert queue.statements == 2, "there may be 1,001 now"
    queue.now_has(2, 1_001)
    with pytest.raises(QueueFullError) as refused:
        room.check(queue.transaction, Amount(1, 1_000))
    refusal = refused.value.refusal
    assert (refusal.unit, refusal.limit, refusal.waiting, refusal.submitted) == (
        "bytes", 1_000, 1, 1_000,
    )  # fmt: skip
    queue.now_has(2, 1_000)
    room.check(queue.transaction, Amount(1, 1_000))


def test_what_was_perhaps_not_stored_is_counted_again(queue: Queue) -> None:
    room = QueueRoom(QueueLimits(jobs=10))
    queue.now_has(1)
    room.check(queue.transaction, jobs(1))
    queue.now_has(11)
    room.forget()
    with pytest.raises(QueueFullError):
        room.check(queue.transaction, jobs(1))


def test_without_a_limit_nothing_is_ever_asked(queue: Queue) -> None:
    QueueRoom(QueueLimits()).check(queue.transaction, Amount(10**9, 10**15))
    assert queue.statements == 0
