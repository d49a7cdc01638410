"""Waiting for preconditions, and its end."""

from __future__ import annotations

from headway.core.failure import ErrorInfo
from headway.core.states import Outcome
from headway.store.attempts import Finish
from headway.store.events import EventKind
from headway.store.sqlite import locks
from headway.store.sqlite.ending import end_job
from headway.store.sqlite.rows import JOB_WIDTH, job_from, terms_from, time_from_us
from headway.store.sqlite.submission import line_for
from headway.store.sqlite.transaction import Transaction
from headway.store.waits import Waiting


def waiting(transaction: Transaction) -> list[Waiting]:
    """The jobs that wait for preconditions."""
    return [
        Waiting(
            job=job_from(row),
            since=time_from_us(row[JOB_WIDTH]),
            preconditions=terms_from(row[JOB_WIDTH + 1]).preconditions,
        )
        for row in transaction.all("waiting")
    ]


def describe_wait(transaction: Transaction, job_id: str, detail: str) -> bool:
    """Say what a precondition waits for."""
    return transaction.change("describe_wait", id=job_id, detail=detail) == 1


def preconditions_met(transaction: Transaction, job_id: str) -> bool:
    """Let the job queue."""
    row = transaction.one("awaiting", id=job_id)
    if row is None:
        return False
    sequence, lock = row
    transaction.change(
        "make_wait",
        sequence=sequence,
        wait_reason=line_for(False, lock),
        wait_detail=None,
        needs_preconditions=False,
        now_us=transaction.now_us,
    )
    transaction.event(sequence, EventKind.READY)
    locks.admit(transaction, lock)
    return True


def precondition_failed(
    transaction: Transaction, job_id: str, outcome: Outcome, error: ErrorInfo
) -> bool:
    """End a job whose precondition cannot be met."""
    awaiting = transaction.one("awaiting", id=job_id)
    row = transaction.one("get", id=job_id)
    if awaiting is None or row is None:
        return False
    end_job(transaction, job_from(row), Finish(outcome=outcome, error=error))
    return True
