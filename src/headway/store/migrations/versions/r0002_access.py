"""Accounts: who may do what.

Revision ID: 0002
"""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE users (
        name          TEXT PRIMARY KEY,
        administrator INTEGER NOT NULL,
        created_at_us INTEGER NOT NULL,
        created_by    TEXT NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    # A deleted one keeps its row: its name must not be given out again while jobs bear it.
    """
    CREATE TABLE workspaces (
        name          TEXT PRIMARY KEY,
        created_at_us INTEGER NOT NULL,
        created_by    TEXT NOT NULL,
        deleted_at_us INTEGER
    ) STRICT, WITHOUT ROWID
    """,
    """
    INSERT INTO workspaces (name, created_at_us, created_by)
    VALUES ('default', unixepoch() * 1000000, 'system')
    """,
    """
    CREATE TABLE members (
        workspace TEXT NOT NULL,
        user      TEXT NOT NULL,
        role      TEXT NOT NULL,
        PRIMARY KEY (workspace, user)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX members_by_user ON members (user)",
    # The time of the first account, which stays when all accounts are gone: a server that had
    # accounts once is never again open to everybody.
    "CREATE TABLE closed (since_us INTEGER PRIMARY KEY) STRICT",
    # secret_hash: SHA-256; the token itself is stored nowhere.
    """
    CREATE TABLE tokens (
        id              TEXT PRIMARY KEY,
        secret_hash     BLOB NOT NULL,
        kind            TEXT NOT NULL,
        label           TEXT NOT NULL,
        user            TEXT,
        workspace       TEXT,
        role            TEXT,
        parent          TEXT,
        created_at_us   INTEGER NOT NULL,
        created_by      TEXT NOT NULL,
        expires_at_us   INTEGER,
        last_used_at_us INTEGER,
        revoked_at_us   INTEGER,
        revoked_by      TEXT
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX tokens_by_user ON tokens (user, created_at_us) WHERE user IS NOT NULL",
    """
    CREATE INDEX tokens_by_workspace ON tokens (workspace, created_at_us)
    WHERE workspace IS NOT NULL
    """,
    """
    CREATE INDEX tokens_by_revocation ON tokens (revoked_at_us) WHERE revoked_at_us IS NOT NULL
    """,
    "CREATE INDEX tokens_by_expiry ON tokens (expires_at_us) WHERE expires_at_us IS NOT NULL",
    "CREATE INDEX tokens_by_parent ON tokens (parent) WHERE parent IS NOT NULL",
    # AUTOINCREMENT: the number is a cursor, and a gap in it shows that a line was removed.
    """
    CREATE TABLE audit (
        number      INTEGER PRIMARY KEY AUTOINCREMENT,
        at_us       INTEGER NOT NULL,
        user        TEXT NOT NULL,
        via         TEXT NOT NULL,
        token_id    TEXT,
        address     TEXT,
        workspace   TEXT,
        action      TEXT NOT NULL,
        subject     TEXT NOT NULL,
        detail_json TEXT NOT NULL,
        count       INTEGER NOT NULL
    ) STRICT
    """,
    "CREATE INDEX audit_by_time ON audit (at_us)",
    "CREATE INDEX audit_by_action ON audit (action, number)",
    "CREATE INDEX audit_by_workspace ON audit (workspace, number) WHERE workspace IS NOT NULL",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("restore a copy of the state directory made before the upgrade")
