"""Leases of system jobs, their periods, and the removal of old jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from headway.core.clock import ns_from_s
from headway.store.jobs import RetentionRule
from headway.store.sqlite.rows import Row, time_from_us, to_json, us_from_time
from headway.store.sqlite.transaction import Transaction

_NO_LIMIT = 2**62


def take_lease(
    transaction: Transaction, name: str, owner: str, lease_s: float, dead_owners: Sequence[str]
) -> str:
    """Take or renew a lease; who has it now."""
    transaction.change(
        "take_lease",
        name=name,
        owner=owner,
        lease_until_ns=transaction.now_ns + ns_from_s(lease_s),
        now_ns=transaction.now_ns,
        dead_json=to_json(list(dead_owners)),
    )
    row = transaction.one("lease_owner", name=name)
    assert row is not None
    holder: str = row[0]
    return holder


def record_period(transaction: Transaction, name: str, due: datetime) -> None:
    transaction.change("record_period", name=name, due_us=us_from_time(due))


def last_period(transaction: Transaction, name: str) -> datetime | None:
    row = transaction.one("last_period", name=name)
    return None if row is None else time_from_us(row[0])


def expired_jobs(transaction: Transaction, rule: RetentionRule, limit: int) -> list[str]:
    """Ids of the ended jobs that a rule lets go, oldest first."""
    expired: dict[str, None] = {}
    if rule.max_age is not None:
        rows = transaction.all(
            "ended_before",
            before_us=us_from_time(transaction.now - rule.max_age),
            workspace=rule.workspace,
            besides_json=to_json(rule.besides),
            limit=limit,
        )
        expired |= dict.fromkeys(row[0] for row in rows)
    if len(expired) < limit and (rule.max_jobs is not None or rule.max_bytes is not None):
        rows = transaction.all(
            "ended_beyond",
            max_jobs=_NO_LIMIT if rule.max_jobs is None else rule.max_jobs,
            max_bytes=_NO_LIMIT if rule.max_bytes is None else rule.max_bytes,
            workspace=rule.workspace,
            besides_json=to_json(rule.besides),
            limit=limit,
        )
        expired |= dict.fromkeys(row[0] for row in rows)
    return list(expired)[:limit]


def delete_jobs(transaction: Transaction, job_ids: Sequence[str]) -> int:
    """Remove ended jobs; the number that were there and ended."""
    deleted = 0
    for job_id in job_ids:
        row = transaction.one("deletable", id=job_id)
        if row is not None:
            _delete(transaction, row)
            deleted += 1
    return deleted


def _delete(transaction: Transaction, row: Row) -> None:
    sequence, labels_json, workspace, idempotency_key = row
    for name, value in msgspec.json.decode(labels_json, type=dict[str, str]).items():
        transaction.change("delete_label", name=name, value=value, sequence=sequence)
    if idempotency_key is not None:
        transaction.change("delete_idempotency", workspace=workspace, key=idempotency_key)
    for part in ("payload", "result", "events", "attempts", "job"):
        transaction.change(f"delete_{part}", sequence=sequence)
