"""Taking jobs in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.core.ids import JobIds
from headway.core.states import WaitReason
from headway.store.sqlite import keys
from headway.store.sqlite.rows import job_from, labels_json, terms_json, us_from_time
from headway.store.sqlite.transaction import Transaction
from headway.store.values import IdempotencyConflict, JobRow, NewJob, Submitted


class Conflict(Exception):
    """Undoes a whole submission; never leaves the store."""

    def __init__(self, conflict: IdempotencyConflict) -> None:
        super().__init__(conflict.key)
        self.conflict = conflict


def submit(transaction: Transaction, ids: JobIds, jobs: Sequence[NewJob]) -> list[Submitted]:
    """Insert the jobs, or find the ones that their idempotency keys already made.

    Raises:
        Conflict: a key was used before for another request.
    """
    taken_in = [_take_in(transaction, ids, job) for job in jobs]
    for key in dict.fromkeys(job.concurrency_key for job in jobs):
        keys.admit(transaction, key)
    return [_admitted(transaction, submitted) for submitted in taken_in]


def line_for(needs_preconditions: bool, concurrency_key: str | None) -> WaitReason:
    """Where a job waits whose time has come."""
    if needs_preconditions:
        return WaitReason.PRECONDITION
    return WaitReason.QUEUED if concurrency_key is None else WaitReason.LOCKED


def _take_in(transaction: Transaction, ids: JobIds, job: NewJob) -> Submitted:
    earlier = _earlier(transaction, job)
    if earlier is not None:
        return Submitted(job=earlier, created=False)
    return Submitted(job=_insert(transaction, ids.new(transaction.now), job), created=True)


def _admitted(transaction: Transaction, submitted: Submitted) -> Submitted:
    """A job with a key as it is now: admission has decided whether it is locked."""
    if submitted.job.concurrency_key is None:
        return submitted
    job = _by_sequence(transaction, submitted.job.sequence)
    return Submitted(job=job, created=submitted.created)


def _earlier(transaction: Transaction, job: NewJob) -> JobRow | None:
    if job.idempotency is None:
        return None
    found = transaction.one("find_idempotency", workspace=job.workspace, key=job.idempotency.key)
    if found is None:
        return None
    fingerprint, sequence = found
    earlier = _by_sequence(transaction, sequence)
    if fingerprint != job.idempotency.fingerprint:
        raise Conflict(IdempotencyConflict(key=job.idempotency.key, job_id=earlier.id))
    return earlier


def _insert(transaction: Transaction, job_id: str, job: NewJob) -> JobRow:
    inserted = transaction.one("insert_job", **_columns(transaction, job_id, job))
    assert inserted is not None
    row = job_from(inserted)
    sequence = row.sequence
    transaction.change(
        "insert_payload",
        sequence=sequence,
        input_json=job.input_json,
        terms_json=terms_json(job),
    )
    for name, value in job.labels.items():
        transaction.change("insert_label", name=name, value=value, sequence=sequence)
    if job.idempotency is not None:
        transaction.change(
            "insert_idempotency",
            workspace=job.workspace,
            key=job.idempotency.key,
            fingerprint=job.idempotency.fingerprint,
            sequence=sequence,
        )
    return row


def _columns(transaction: Transaction, job_id: str, job: NewJob) -> dict[str, Any]:
    scheduled = job.not_before is not None and job.not_before > transaction.now
    needs_preconditions = bool(job.preconditions)
    return {
        "id": job_id,
        "operation": job.operation,
        "lane": job.lane,
        "workspace": job.workspace,
        "created_by": job.created_by,
        "wait_reason": WaitReason.SCHEDULED
        if scheduled
        else line_for(needs_preconditions, job.concurrency_key),
        "wait_detail": None,
        "now_us": transaction.now_us,
        "run_at_us": us_from_time(job.not_before) if job.not_before and scheduled else None,
        "needs_preconditions": needs_preconditions,
        "priority": job.priority,
        "concurrency_key": job.concurrency_key,
        "timeout_s": job.timeout_s,
        "labels_json": labels_json(job.labels),
        "retry_of": job.retry_of,
        "idempotency_key": job.idempotency.key if job.idempotency else None,
        "kept_bytes": len(job.input_json),
    }


def _by_sequence(transaction: Transaction, sequence: int) -> JobRow:
    row = transaction.one("get_by_sequence", sequence=sequence)
    assert row is not None
    return job_from(row)
