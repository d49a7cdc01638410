"""Limits in the database, and what they are compared with."""

from __future__ import annotations

from collections.abc import Iterable

from headway.store.jobs import JobRow
from headway.store.limits import EVERY, WHOLE, Limit, QueueFull, Use
from headway.store.sqlite import locks
from headway.store.sqlite.sharing import running_totals
from headway.store.sqlite.transaction import Transaction


class QueueFullError(Exception):
    """Undoes a whole submission; never leaves the store."""

    def __init__(self, refusal: QueueFull) -> None:
        super().__init__(f"{refusal.workspace}/{refusal.user}")
        self.refusal = refusal


def all_limits(transaction: Transaction) -> list[Limit]:
    """Every limit that was set."""
    return transaction.limits().all()


def set_limit(transaction: Transaction, limit: Limit) -> None:
    """Set or replace one; jobs that run already go on, jobs that wait already stay."""
    if limit.max_running is limit.max_queued is limit.weight is None:
        transaction.change("delete_limit", workspace=limit.workspace, user=limit.user)
    else:
        transaction.change(
            "set_limit",
            workspace=limit.workspace,
            user=limit.user,
            max_running=limit.max_running,
            max_queued=limit.max_queued,
            weight=limit.weight,
        )
    transaction.change("new_limits_version")
    transaction.forget_limits()
    if limit.workspace == EVERY:
        locks.admit_all(transaction)
    else:
        locks.admit_waiting_of(transaction, limit.workspace)


def use(transaction: Transaction, workspace: str | None) -> list[Use]:
    """Who runs and waits how much, in one workspace or in all."""
    running = {key: jobs for key, jobs in running_totals(transaction).items() if key[1] != WHOLE}
    waiting = {(row[0], row[1]): row[2] for row in transaction.all("pending_totals")}
    return [
        Use(
            workspace=key[0],
            user=key[1],
            running=running.get(key, 0),
            waiting=waiting.get(key, 0),
        )
        for key in sorted(running.keys() | waiting.keys())
        if workspace in (None, key[0])
    ]


def check_queued(transaction: Transaction, version: int, created: Iterable[JobRow]) -> None:
    """Refuse a submission, whose jobs are inserted already, that leaves too many waiting.

    Args:
        transaction: The submission's.
        version: Of the limits.
        created: Its new jobs.

    Raises:
        QueueFullError: a workspace or user has too many.
    """
    book = transaction.limits_at(version)
    if not book.limits_queued:
        return
    counts: dict[tuple[str, str], int] = {}
    for job in created:
        for user in (WHOLE, job.created_by):
            counts[job.workspace, user] = counts.get((job.workspace, user), 0) + 1
    for (workspace, user), submitted in counts.items():
        limit = book.max_queued(workspace, user)
        if limit is None:
            continue
        waiting = _waiting(transaction, workspace, user)
        if waiting > limit:
            raise QueueFullError(
                QueueFull(
                    workspace=workspace,
                    user=user,
                    limit=limit,
                    waiting=waiting - submitted,
                    submitted=submitted,
                )
            )


def left_running(transaction: Transaction, version: int, job: JobRow) -> None:
    """A job runs no more: who was at a limit may have its turn at locks again."""
    book = transaction.limits_at(version)
    if not book.limits_running:
        return
    running = running_totals(transaction)
    for user in (WHOLE, job.created_by):
        limit = book.max_running(job.workspace, user)
        if limit is not None and running.get((job.workspace, user), 0) + 1 >= limit:
            locks.admit_waiting_of(transaction, job.workspace)
            return


def _waiting(transaction: Transaction, workspace: str, user: str) -> int:
    if user == WHOLE:
        row = transaction.one("workspace_pending", workspace=workspace)
    else:
        row = transaction.one("user_pending", workspace=workspace, user=user)
    return 0 if row is None else row[0]
