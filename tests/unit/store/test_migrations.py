"""Migrations: from every released schema, whole or not at all."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib import resources

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from headway.core.errors import ConfigError
from headway.core.statedir import StateDir
from headway.store.sqlite import schema
from headway.store.sqlite.schema import HEAD, ensure_schema

RELEASED = {
    "empty": "",
}
"""SQL that makes each released schema with some data; the first release adds `0001`."""


def revisions(state_dir: StateDir) -> list[str]:
    with closing(sqlite3.connect(state_dir.database)) as connection:
        return [row[0] for row in connection.execute("SELECT version_num FROM alembic_version")]


def migrate_to(revision: str, state_dir: StateDir) -> None:
    """The database of an older Headway."""
    config = Config()
    config.set_main_option("script_location", "headway.store:migrations")
    engine = create_engine(f"sqlite:///{state_dir.database}")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    engine.dispose()


@pytest.mark.parametrize("release", RELEASED)
def test_every_released_schema_migrates(release: str, state_dir: StateDir) -> None:
    state_dir.create()
    with closing(sqlite3.connect(state_dir.database)) as connection:
        connection.executescript(RELEASED[release])
    ensure_schema(state_dir.database, state_dir.writer_lock)
    assert revisions(state_dir) == [HEAD]
    ensure_schema(state_dir.database, state_dir.writer_lock)
    assert revisions(state_dir) == [HEAD]


def test_head_is_the_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", "headway.store:migrations")
    script = ScriptDirectory.from_config(config)
    assert script.get_heads() == [HEAD]
    for file in resources.files("headway.store.migrations.versions").iterdir():
        if file.name.startswith("r"):
            assert file.name[1:5].isdigit(), "revisions are numbered, so that newer can be told"


def test_users_of_whose_removal_only_the_audit_log_knows_keep_their_names(
    state_dir: StateDir,
) -> None:
    state_dir.create()
    migrate_to("0004", state_dir)
    with closing(sqlite3.connect(state_dir.database)) as connection, connection:
        for name in ("ann", "ben", "ann"):
            connection.execute(
                "INSERT INTO audit (at_us, user, via, action, subject, detail_json, count)"
                " VALUES (7, 'root', 'token', 'user.remove', ?, '{}', 1)", (name,),
            )  # fmt: skip
        connection.execute("INSERT INTO users VALUES ('ben', 0, 9, 'root')")  # came back
    ensure_schema(state_dir.database, state_dir.writer_lock)
    with closing(sqlite3.connect(state_dir.database)) as connection:
        found = connection.execute("SELECT name, removed_at_us FROM users ORDER BY name")
        assert found.fetchall() == [("ann", 7), ("ben", None)]


def test_the_bytes_of_what_waited_before_they_were_counted_are_known(state_dir: StateDir) -> None:
    state_dir.create()
    migrate_to("0004", state_dir)
    with closing(sqlite3.connect(state_dir.database)) as connection, connection:
        for number, state in enumerate(("PENDING", "PENDING", "RUNNING", "SUCCEEDED"), 1):
            connection.execute(
                "INSERT INTO jobs (sequence, id, operation, lane, workspace, created_by, state,"
                " priority, created_at_us) VALUES (?, ?, 'o', 'long', 'w', 'u', ?, 0, 0)",
                (number, f"job{number}", state),
            )
            connection.execute("INSERT INTO payloads VALUES (?, ?, '{}')", (number, '"\u00e4"'))
    ensure_schema(state_dir.database, state_dir.writer_lock)
    with closing(sqlite3.connect(state_dir.database)) as connection:
        [totals] = connection.execute("SELECT * FROM pending_totals")
        sizes = connection.execute("SELECT submitted_bytes FROM jobs ORDER BY sequence")
        assert totals == ("w", "u", 2, 12)
        assert [each for (each,) in sizes] == [6, 6, 6, 0]


def test_a_newer_database_is_refused(state_dir: StateDir) -> None:
    state_dir.create()
    ensure_schema(state_dir.database, state_dir.writer_lock)
    with closing(sqlite3.connect(state_dir.database)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(ConfigError, match="newer than this Headway"):
        ensure_schema(state_dir.database, state_dir.writer_lock)


def test_a_migration_that_breaks_off_leaves_nothing(
    state_dir: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    state_dir.create()
    with closing(sqlite3.connect(state_dir.database)) as connection, connection:
        connection.execute("CREATE TABLE results (old)")  # collides with one of the last tables
    with pytest.raises(Exception, match="results already exists"):
        ensure_schema(state_dir.database, state_dir.writer_lock)
    with closing(sqlite3.connect(state_dir.database)) as connection:
        names = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
    assert names == {"results"}


def test_the_database_is_private_and_syncs_every_commit(state_dir: StateDir) -> None:
    state_dir.create()
    ensure_schema(state_dir.database, state_dir.writer_lock)
    assert state_dir.database.stat().st_mode & 0o077 == 0
    assert state_dir.root.stat().st_mode & 0o077 == 0
    with closing(schema.connect_writer(state_dir.database)) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_start_without_migration_does_not_import_alembic(state_dir: StateDir) -> None:
    state_dir.create()
    ensure_schema(state_dir.database, state_dir.writer_lock)
    code = (
        "import sys; from pathlib import Path; from headway.store.sqlite.store import SqliteStore;"
        "from headway.store.sqlite.schema import ensure_schema;"
        "ensure_schema(Path(sys.argv[1]), Path(sys.argv[2]));"
        "assert not {'alembic', 'sqlalchemy', 'fastapi'} & sys.modules.keys()"
    )
    arguments = [str(state_dir.database), str(state_dir.writer_lock)]
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, timeout=60)
