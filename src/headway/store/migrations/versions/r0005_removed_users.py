"""Removed users keep their names.

Revision ID: 0005
"""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

STATEMENTS = (
    # A removed one keeps its row: jobs and lines of the audit log bear its name.
    "ALTER TABLE users ADD COLUMN removed_at_us INTEGER",
    # Those of whom only the audit log knows.
    """
    INSERT INTO users (name, administrator, created_at_us, created_by, removed_at_us)
    SELECT subject, 0, max(at_us), 'system', max(at_us) FROM audit
    WHERE action = 'user.remove' AND subject NOT IN (SELECT name FROM users)
    GROUP BY subject
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("restore a copy of the state directory made before the upgrade")
