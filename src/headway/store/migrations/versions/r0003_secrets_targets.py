"""Secrets, targets and overlays.

Revision ID: 0003
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TABLES = (
    """
    CREATE TABLE secrets (
        workspace     TEXT NOT NULL,
        name          TEXT NOT NULL,
        sealed        BLOB NOT NULL,
        created_at_us INTEGER NOT NULL,
        created_by    TEXT NOT NULL,
        changed_at_us INTEGER NOT NULL,
        changed_by    TEXT NOT NULL,
        PRIMARY KEY (workspace, name)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE targets (
        name            TEXT PRIMARY KEY,
        url             TEXT NOT NULL,
        reach           TEXT NOT NULL,
        workspaces_json TEXT NOT NULL,
        max_rate_per_s  REAL,
        max_streams     INTEGER,
        lock_group      TEXT NOT NULL,
        health_path     TEXT NOT NULL,
        secret          TEXT,
        changed_at_us   INTEGER NOT NULL,
        changed_by      TEXT NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE overlays (
        workspace     TEXT PRIMARY KEY,
        env_json      TEXT NOT NULL,
        config_json   TEXT NOT NULL,
        changed_at_us INTEGER NOT NULL,
        changed_by    TEXT NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
)


def upgrade() -> None:
    for statement in TABLES:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("restore a copy of the state directory made before the upgrade")
