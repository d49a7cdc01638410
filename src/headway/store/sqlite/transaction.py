"""What the store's operations see of the database: named queries, at one moment."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from headway.core.clock import Clock
from headway.store.sqlite.queries import Query
from headway.store.sqlite.rows import Row, us_from_time


class Transaction:
    """Runs named queries on a connection.

    Args:
        connection: In a transaction when the queries write.
        queries: All queries by name.
        clock: Read once: everything in one transaction happens at one time.
    """

    def __init__(
        self, connection: sqlite3.Connection, queries: Mapping[str, Query], clock: Clock
    ) -> None:
        self._connection = connection
        self._queries = queries
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
