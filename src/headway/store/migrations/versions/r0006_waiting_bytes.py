"""Bytes of what waits.

Revision ID: 0006
"""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

STATEMENTS = (
    # What was submitted with the job; never changed, so that what is added to a total when the job
    # comes to wait is what is taken from it when the job goes.
    "ALTER TABLE jobs ADD COLUMN submitted_bytes INTEGER NOT NULL DEFAULT 0",
    """
    UPDATE jobs SET submitted_bytes = (
        SELECT length(CAST(input_json AS BLOB)) + length(CAST(terms_json AS BLOB)) FROM payloads
        WHERE payloads.sequence = jobs.sequence
    ) WHERE state IN ('PENDING', 'RUNNING')
    """,
    "ALTER TABLE pending_totals ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0",
    """
    UPDATE pending_totals SET bytes = coalesce((
        SELECT sum(submitted_bytes) FROM jobs
        WHERE jobs.workspace = pending_totals.workspace AND state = 'PENDING'
              AND created_by = pending_totals.user
    ), 0)
    """,
    "DROP TRIGGER job_counted",
    "DROP TRIGGER job_recounted",
    """
    CREATE TRIGGER job_counted AFTER INSERT ON jobs WHEN NEW.state = 'PENDING' BEGIN
        INSERT INTO pending_totals (workspace, user, jobs, bytes)
        VALUES (NEW.workspace, NEW.created_by, 1, NEW.submitted_bytes)
        ON CONFLICT (workspace, user) DO UPDATE
        SET jobs = jobs + 1, bytes = bytes + excluded.bytes;
    END
    """,
    """
    CREATE TRIGGER job_recounted AFTER UPDATE OF state ON jobs
    WHEN (OLD.state = 'PENDING') <> (NEW.state = 'PENDING') BEGIN
        UPDATE pending_totals
        SET jobs = jobs + iif(NEW.state = 'PENDING', 1, -1),
            bytes = bytes + iif(NEW.state = 'PENDING', 1, -1) * NEW.submitted_bytes
        WHERE workspace = NEW.workspace AND user = NEW.created_by;
    END
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("restore a copy of the state directory made before the upgrade")
