"""The audit log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from headway.access.accounts import Act, AuditEvent, AuditRow
from headway.store.sqlite.account_rows import audit_columns, audit_from
from headway.store.sqlite.rows import us_from_time
from headway.store.sqlite.transaction import Transaction

_NO_NUMBER = 2**62


def note(
    transaction: Transaction,
    act: Act,
    action: str,
    subject: str,
    workspace: str | None = None,
    **detail: str,
) -> None:
    """Note an administrative act, in the transaction that does it."""
    event = AuditEvent(act=act, action=action, subject=subject, workspace=workspace, detail=detail)
    note_all(transaction, [event])


def note_all(transaction: Transaction, events: Sequence[AuditEvent]) -> None:
    for event in events:
        transaction.change("insert_audit", at_us=transaction.now_us, **audit_columns(event))


def log(
    transaction: Transaction,
    before: int | None,
    limit: int,
    workspace: str | None,
    action: str | None,
) -> list[AuditRow]:
    """A page, newest first."""
    before = _NO_NUMBER if before is None else before
    if workspace is not None:
        rows = transaction.all(
            "audit_log_by_workspace",
            workspace=workspace,
            action=action,
            before=before,
            limit=limit,
        )
    elif action is not None:
        rows = transaction.all("audit_log_by_action", action=action, before=before, limit=limit)
    else:
        rows = transaction.all("audit_log", before=before, limit=limit)
    return [audit_from(row) for row in rows]


def trim(transaction: Transaction, before: datetime, max_denied: int, limit: int) -> int:
    """Remove what is too old or, of denials, too much; how many lines."""
    removed = transaction.change("trim_audit_by_age", before_us=us_from_time(before), limit=limit)
    last = transaction.one("newest_denied", kept=max_denied)
    if last is not None:
        removed += transaction.change("trim_denied", last=last[0], limit=limit)
    return removed
