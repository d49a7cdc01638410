"""Taking jobs in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.core.ids import JobIds
from headway.core.states import WaitReason
from headway.store.events import EventKind
from headway.store.sqlite import keys
from headway.store.sqlite.rows import job_from, labels_json, terms_json, us_from_time
from headway.store.sqlite.transaction import Transaction
from headway.store.values import IdempotencyConflict, JobRow, NewJob, Submitted


def submit(
    transaction: Transaction, ids: JobIds, jobs: Sequence[NewJob]
) -> list[Submitted | IdempotencyConflict]:
    """Insert the jobs, or find the ones that their idempotency keys already made."""
    answers: list[int | Submitted | IdempotencyConflict] = [
        _earlier(transaction, job) or _insert(transaction, ids.new(transaction.now), job)
        for job in jobs
    ]
    for key in dict.fromkeys(job.concurrency_key for job in jobs):
        keys.admit(transaction, key)
    # Read back only now: admission has decided which of them are locked.
    return [
        Submitted(job=_by_sequence(transaction, answer), created=True)
        if isinstance(answer, int)
        else answer
        for answer in answers
    ]


def line_for(needs_preconditions: bool, concurrency_key: str | None) -> WaitReason:
    """Where a job waits whose time has come."""
    if needs_preconditions:
        return WaitReason.PRECONDITION
    return WaitReason.QUEUED if concurrency_key is None else WaitReason.LOCKED


def _earlier(transaction: Transaction, job: NewJob) -> Submitted | IdempotencyConflict | None:
    if job.idempotency is None:
        return None
    found = transaction.one("find_idempotency", workspace=job.workspace, key=job.idempotency.key)
    if found is None:
        return None
    fingerprint, sequence = found
    earlier = _by_sequence(transaction, sequence)
    if fingerprint != job.idempotency.fingerprint:
        return IdempotencyConflict(key=job.idempotency.key, job_id=earlier.id)
    return Submitted(job=earlier, created=False)


def _insert(transaction: Transaction, job_id: str, job: NewJob) -> int:
    inserted = transaction.one("insert_job", **_columns(transaction, job_id, job))
    assert inserted is not None
    sequence: int = inserted[0]
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
    transaction.event(sequence, EventKind.SUBMITTED)
    return sequence


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
