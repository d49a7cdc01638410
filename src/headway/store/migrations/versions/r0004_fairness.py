"""Limits and shares.

Revision ID: 0004
"""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TABLES = (
    # What a job must hold to run: the lock that its concurrency key belongs to, else the key.
    "ALTER TABLE jobs ADD COLUMN lock_name TEXT",
    """
    UPDATE jobs SET lock_name = concurrency_key
    WHERE concurrency_key IS NOT NULL AND state IN ('PENDING', 'RUNNING')
    """,
    # Several keys, one lock (two targets on one GPU).
    """
    CREATE TABLE lock_members (
        member    TEXT PRIMARY KEY,
        lock_name TEXT NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    # user '' is the workspace itself, '*' each of its users; workspace '*' is every workspace.
    # A NULL says nothing, and what is less particular holds.
    """
    CREATE TABLE limits (
        workspace   TEXT NOT NULL,
        user        TEXT NOT NULL,
        max_running INTEGER CHECK (max_running >= 0),
        max_queued  INTEGER CHECK (max_queued >= 0),
        weight      REAL CHECK (weight > 0),
        PRIMARY KEY (workspace, user)
    ) STRICT, WITHOUT ROWID
    """,
    # One row, drawn anew with each change of `limits`: processes keep what they read until then.
    # Drawn and not counted, because a count that was rolled back comes again with other limits.
    "CREATE TABLE limits_version (version INTEGER NOT NULL) STRICT",
    "INSERT INTO limits_version (version) VALUES (0)",
    # Virtual times of `fair_share`: the tag of a workspace (user '') or of a user in it, and in
    # `clock` the virtual time among those below it. Workspace '' holds the resource's own clock.
    """
    CREATE TABLE shares (
        resource  TEXT NOT NULL,
        workspace TEXT NOT NULL,
        user      TEXT NOT NULL,
        tag       REAL NOT NULL,
        clock     REAL NOT NULL,
        PRIMARY KEY (resource, workspace, user)
    ) STRICT, WITHOUT ROWID
    """,
    # Jobs that are PENDING, for whatever reason: what the limits on queued jobs count.
    """
    CREATE TABLE pending_totals (
        workspace TEXT NOT NULL,
        user      TEXT NOT NULL,
        jobs      INTEGER NOT NULL,
        PRIMARY KEY (workspace, user)
    ) STRICT, WITHOUT ROWID
    """,
    """
    INSERT INTO pending_totals (workspace, user, jobs)
    SELECT workspace, created_by, count(*) FROM jobs WHERE state = 'PENDING'
    GROUP BY workspace, created_by
    """,
)

INDEXES = (
    # The queue, line by line: the jobs of one user in one workspace stand together, best first.
    "DROP INDEX jobs_ready",
    """
    CREATE INDEX jobs_ready ON jobs (lane, workspace, created_by, priority DESC, sequence)
    WHERE state = 'PENDING' AND wait_reason = 'queued'
    """,
    # The same for each lock, with those that may be claimed, and those that hold it.
    "DROP INDEX jobs_key_line",
    "DROP INDEX jobs_key_head",
    "DROP INDEX jobs_key_held",
    """
    CREATE INDEX jobs_lock_line ON jobs (lock_name, workspace, created_by, priority DESC, sequence)
    WHERE state = 'PENDING' AND wait_reason IN ('queued', 'locked') AND lock_name IS NOT NULL
    """,
    """
    CREATE INDEX jobs_lock_waiters ON jobs (workspace, lock_name)
    WHERE state = 'PENDING' AND wait_reason IN ('queued', 'locked') AND lock_name IS NOT NULL
    """,
    """
    CREATE INDEX jobs_lock_head ON jobs (lock_name)
    WHERE state = 'PENDING' AND wait_reason = 'queued' AND lock_name IS NOT NULL
    """,
    """
    CREATE INDEX jobs_lock_held ON jobs (lock_name)
    WHERE state = 'RUNNING' AND lock_name IS NOT NULL
    """,
)

TRIGGERS = (
    """
    CREATE TRIGGER job_counted AFTER INSERT ON jobs WHEN NEW.state = 'PENDING' BEGIN
        INSERT INTO pending_totals (workspace, user, jobs)
        VALUES (NEW.workspace, NEW.created_by, 1)
        ON CONFLICT (workspace, user) DO UPDATE SET jobs = jobs + 1;
    END
    """,
    """
    CREATE TRIGGER job_recounted AFTER UPDATE OF state ON jobs
    WHEN (OLD.state = 'PENDING') <> (NEW.state = 'PENDING') BEGIN
        UPDATE pending_totals
        SET jobs = jobs + iif(NEW.state = 'PENDING', 1, -1)
        WHERE workspace = NEW.workspace AND user = NEW.created_by;
    END
    """,
)


def upgrade() -> None:
    for statement in TABLES + INDEXES + TRIGGERS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("restore a copy of the state directory made before the upgrade")
