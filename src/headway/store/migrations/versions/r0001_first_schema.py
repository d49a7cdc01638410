"""The first schema: one row a job, its payload and history beside it.

Revision ID: 0001
"""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = (
    # What changes often (state, lease, progress) stands apart from what never does (the payload):
    # SQLite rewrites the whole row on an update, however large its JSON.
    # AUTOINCREMENT: a sequence is a cursor that clients keep, so it is never given out twice.
    """
    CREATE TABLE jobs (
        sequence            INTEGER PRIMARY KEY AUTOINCREMENT,
        id                  TEXT NOT NULL UNIQUE,
        operation           TEXT NOT NULL,
        lane                TEXT NOT NULL,
        workspace           TEXT NOT NULL,
        created_by          TEXT NOT NULL,
        state               TEXT NOT NULL,
        wait_reason         TEXT,
        wait_detail         TEXT,
        waiting_since_us    INTEGER,
        run_at_us           INTEGER,
        needs_preconditions INTEGER NOT NULL DEFAULT 0,
        priority            INTEGER NOT NULL,
        concurrency_key     TEXT,
        attempt             INTEGER NOT NULL DEFAULT 0,
        released            INTEGER NOT NULL DEFAULT 0,
        crashes             INTEGER NOT NULL DEFAULT 0,
        timeout_s           REAL,
        labels_json         TEXT NOT NULL DEFAULT '{}',
        retry_of            TEXT,
        idempotency_key     TEXT,
        created_at_us       INTEGER NOT NULL,
        cancel_requested_at_us INTEGER,
        owner               TEXT,
        lease_until_ns      INTEGER,
        started_at_us       INTEGER,
        ended_at_us         INTEGER,
        progress_json       TEXT,
        outcome             TEXT,
        error_json          TEXT,
        kept_bytes          INTEGER NOT NULL DEFAULT 0
    ) STRICT
    """,
    """
    CREATE TABLE payloads (
        sequence   INTEGER PRIMARY KEY,
        input_json TEXT NOT NULL,
        terms_json TEXT NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE results (
        sequence INTEGER PRIMARY KEY,
        json     TEXT,
        file     TEXT
    ) STRICT
    """,
    """
    CREATE TABLE events (
        sequence  INTEGER NOT NULL,
        number    INTEGER NOT NULL,
        at_us     INTEGER NOT NULL,
        kind      TEXT NOT NULL,
        attempt   INTEGER NOT NULL,
        data_json TEXT NOT NULL,
        PRIMARY KEY (sequence, number)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE attempts (
        sequence      INTEGER NOT NULL,
        attempt       INTEGER NOT NULL,
        owner         TEXT NOT NULL,
        started_at_us INTEGER NOT NULL,
        ended_at_us   INTEGER NOT NULL,
        outcome       TEXT,
        error_json    TEXT,
        usage_json    TEXT,
        PRIMARY KEY (sequence, attempt)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE labels (
        name     TEXT NOT NULL,
        value    TEXT NOT NULL,
        sequence INTEGER NOT NULL,
        PRIMARY KEY (name, value, sequence)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE idempotency (
        workspace   TEXT NOT NULL,
        key         TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        sequence    INTEGER NOT NULL,
        PRIMARY KEY (workspace, key)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE ended_totals (
        operation TEXT NOT NULL,
        outcome   TEXT NOT NULL,
        jobs      INTEGER NOT NULL,
        PRIMARY KEY (operation, outcome)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE concurrency_limits (
        key         TEXT PRIMARY KEY,
        max_running INTEGER NOT NULL CHECK (max_running >= 1)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE leases (
        name           TEXT PRIMARY KEY,
        owner          TEXT NOT NULL,
        lease_until_ns INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE periods (
        name   TEXT PRIMARY KEY,
        due_us INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
)

INDEXES = (
    # The queue itself. Partial, so that its size is that of the waiting work, not of the history.
    """
    CREATE INDEX jobs_ready ON jobs (lane, priority DESC, sequence)
    WHERE state = 'PENDING' AND wait_reason = 'queued'
    """,
    # The timers: scheduled jobs and backoff.
    """
    CREATE INDEX jobs_due ON jobs (run_at_us)
    WHERE state = 'PENDING' AND wait_reason IN ('scheduled', 'backoff')
    """,
    """
    CREATE INDEX jobs_preconditions ON jobs (sequence)
    WHERE state = 'PENDING' AND wait_reason = 'precondition'
    """,
    # The line of each concurrency key, its head, and who holds it.
    """
    CREATE INDEX jobs_key_line ON jobs (concurrency_key, priority DESC, sequence)
    WHERE state = 'PENDING' AND wait_reason IN ('queued', 'locked')
          AND concurrency_key IS NOT NULL
    """,
    """
    CREATE INDEX jobs_key_head ON jobs (concurrency_key)
    WHERE state = 'PENDING' AND wait_reason = 'queued' AND concurrency_key IS NOT NULL
    """,
    """
    CREATE INDEX jobs_key_held ON jobs (concurrency_key)
    WHERE state = 'RUNNING' AND concurrency_key IS NOT NULL
    """,
    # Lists by filter, newest first; the first also finds the running jobs, which are few, for
    # leases and owners. An index on their leases would be written at every renewal.
    "CREATE INDEX jobs_by_state ON jobs (state, sequence)",
    "CREATE INDEX jobs_by_operation ON jobs (operation, state, sequence)",
    # Retention: oldest end first; covering, for the limit by size.
    """
    CREATE INDEX jobs_ended ON jobs (ended_at_us, sequence, workspace, kept_bytes)
    WHERE ended_at_us IS NOT NULL
    """,
)


# What belongs to every change of state is written by the change itself: no way of ending a job can
# forget its event or its total. It is also faster: the calling thread gives up Python's lock at
# each statement, and has to queue for it behind the event loop to go on.
TRIGGERS = (
    """
    CREATE TRIGGER job_submitted AFTER INSERT ON jobs BEGIN
        INSERT INTO events (sequence, number, at_us, kind, attempt, data_json)
        VALUES (NEW.sequence, 1, NEW.created_at_us, 'submitted', 0, '{}');
    END
    """,
    """
    CREATE TRIGGER job_claimed AFTER UPDATE OF state ON jobs WHEN NEW.state = 'RUNNING' BEGIN
        INSERT INTO events (sequence, number, at_us, kind, attempt, data_json)
        SELECT NEW.sequence, coalesce(max(number), 0) + 1, NEW.started_at_us, 'claimed',
               NEW.attempt, json_object('owner', NEW.owner)
        FROM events WHERE sequence = NEW.sequence;
    END
    """,
    """
    CREATE TRIGGER job_ended AFTER UPDATE OF state ON jobs
    WHEN OLD.ended_at_us IS NULL AND NEW.ended_at_us IS NOT NULL BEGIN
        INSERT INTO events (sequence, number, at_us, kind, attempt, data_json)
        SELECT NEW.sequence, coalesce(max(number), 0) + 1, NEW.ended_at_us, 'ended',
               NEW.attempt, json_object('outcome', NEW.outcome)
        FROM events WHERE sequence = NEW.sequence;
        INSERT INTO ended_totals (operation, outcome, jobs)
        VALUES (NEW.operation, NEW.outcome, 1)
        ON CONFLICT (operation, outcome) DO UPDATE SET jobs = jobs + 1;
    END
    """,
)


def upgrade() -> None:
    for statement in TABLES + INDEXES + TRIGGERS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("the first schema has none before it; delete the state directory")
