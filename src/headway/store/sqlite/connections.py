"""SQLite connections with the settings that durability and speed rest on."""

from __future__ import annotations

import sqlite3
from pathlib import Path

_BUSY_TIMEOUT_S = 5.0
"""How long SQLite itself waits for a foreign process (a backup, a shell). Our own writers take
turns by a file lock and never meet here."""
_CACHE_KIB = 4096
_WAL_KEEP_BYTES = 64 * 1024 * 1024
_STATEMENTS = 256


def connect_writer(path: Path) -> sqlite3.Connection:
    """The connection of a writer thread: every commit is on the disk when it returns."""
    connection = _connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_KEEP_BYTES}")
    return connection


def connect_reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write; with a write-ahead log it neither waits nor is waited for."""
    connection = _connect(path)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path,
        timeout=_BUSY_TIMEOUT_S,
        isolation_level=None,  # transactions begin and end where this package says
        check_same_thread=False,  # opened by one thread, then owned by another
        cached_statements=_STATEMENTS,
    )
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection
