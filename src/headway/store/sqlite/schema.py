"""Brings a database to the schema of this version of Headway."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

from headway.core.errors import ConfigError
from headway.store.sqlite.connections import connect_writer
from headway.store.sqlite.workers import locked

HEAD = "0006"
"""The revision that this code needs; a test compares it with the newest migration."""


def ensure_schema(database: Path, writer_lock: Path) -> None:
    """Migrate when needed; at most one process does.

    Raises:
        ConfigError: the database was made by a newer Headway.
    """
    with locked(writer_lock), closing(connect_writer(database)) as connection:
        database.chmod(0o600)
        revision = _revision(connection)
        if revision != HEAD:
            _refuse_newer(revision)
            _migrate(connection)


def _revision(connection: sqlite3.Connection) -> str | None:
    exists = connection.execute(
        "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'alembic_version'"
    ).fetchone()
    if not exists:
        return None
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return None if row is None else str(row[0])


def _refuse_newer(revision: str | None) -> None:
    # Revisions are numbered, so that an old program can tell a newer database from its own.
    if revision is not None and revision > HEAD:
        raise ConfigError(
            f"the database has schema {revision}, newer than this Headway knows ({HEAD});"
            " use the version of Headway that made it, or a later one"
        )


def _migrate(connection: sqlite3.Connection) -> None:
    """Run the missing migrations in one transaction: killed in the middle, nothing happened."""
    # Imported only here: Alembic and SQLAlchemy take most of a second, and a start rarely migrates.
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine
    from sqlalchemy.pool import StaticPool

    # It tells each of its plugins at level INFO; the server's log is not the place.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    config = Config()
    config.set_main_option("script_location", "headway.store:migrations")
    engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
    with engine.connect() as lent:
        lent.exec_driver_sql("BEGIN IMMEDIATE")
        config.attributes["connection"] = lent
        command.upgrade(config, "head")
        lent.commit()
