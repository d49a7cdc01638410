"""What the store's operations see of the database: named queries, at one moment."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from headway.core.clock import Clock
from headway.store.limits import Limit, LimitBook
from headway.store.sqlite.queries import Query
from headway.store.sqlite.rows import Row, us_from_time


class LimitBooks:
    """Keeps the limits as they were read last, which is almost always how they still are.

    Shared by the threads of a store; the worst of two that read at a time is one read too many.
    """

    def __init__(self) -> None:
        self._kept: tuple[int, LimitBook] | None = None

    def at(self, version: int, read: Callable[[], list[Row]]) -> LimitBook:
        """The limits of this version; `read` is called when they are not known."""
        kept = self._kept
        if kept is not None and kept[0] == version:
            return kept[1]
        book = LimitBook(
            Limit(
                workspace=workspace,
                user=user,
                max_running=max_running,
                max_queued=max_queued,
                weight=weight,
            )
            for workspace, user, max_running, max_queued, weight in read()
        )
        self._kept = (version, book)
        return book


class Transaction:
    """Runs named queries on a connection.

    Args:
        connection: In a transaction when the queries write.
        queries: All queries by name.
        clock: Read once: everything in one transaction happens at one time.
        books: The limits that were read before.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        queries: Mapping[str, Query],
        clock: Clock,
        books: LimitBooks,
    ) -> None:
        self._connection = connection
        self._queries = queries
        self._books = books
        self._book: LimitBook | None = None
        self.now = clock.now()
        self.now_us = us_from_time(self.now)
        self.now_ns = clock.monotonic_ns()

    def change(self, query: str, /, **parameters: Any) -> int:
        """Run a statement; the number of rows that it changed."""
        return self._connection.execute(self._queries[query].sql, parameters).rowcount

    def one(self, query: str, /, **parameters: Any) -> Row | None:
        """The first row, or None."""
        row: Row | None = self._connection.execute(self._queries[query].sql, parameters).fetchone()
        return row

    def all(self, query: str, /, **parameters: Any) -> list[Row]:
        """Every row."""
        return self._connection.execute(self._queries[query].sql, parameters).fetchall()

    def limits(self) -> LimitBook:
        """The limits that hold."""
        if self._book is None:
            row = self.one("limits_version")
            assert row is not None
            self._book = self.limits_at(row[0])
        return self._book

    def limits_at(self, version: int) -> LimitBook:
        """The limits of a version that a statement of this transaction returned."""
        return self._books.at(version, lambda: self.all("all_limits"))

    def forget_limits(self) -> None:
        """They were changed in this transaction."""
        self._book = None

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let several reads see one moment; what writes does so anyway."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK")

    def select(self, sql: str, parameters: Mapping[str, Any]) -> list[Row]:
        """Rows of a statement that was put together from fixed parts (lists by filter)."""
        return self._connection.execute(sql, parameters).fetchall()

    def event(self, sequence: int, kind: str, attempt: int = 0, data_json: str = "{}") -> None:
        """Add to a job's history."""
        self.change(
            "insert_event",
            sequence=sequence,
            at_us=self.now_us,
            kind=kind,
            attempt=attempt,
            data_json=data_json,
        )
