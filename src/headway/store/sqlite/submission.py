"""Taking jobs in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.core.ids import JobIds
from headway.core.states import WaitReason
from headway.store.jobs import JobRow
from headway.store.sqlite import locks
from headway.store.sqlite.limits import check_queued
from headway.store.sqlite.queue_room import Amount, QueueRoom
from headway.store.sqlite.rows import JOB_WIDTH, job_from, labels_json, terms_json, us_from_time
from headway.store.sqlite.transaction import Transaction
from headway.store.submissions import IdempotencyConflict, NewJob, Submitted


class Conflict(Exception):
    """Undoes a whole submission; never leaves the store."""

    def __init__(self, conflict: IdempotencyConflict) -> None:
        super().__init__(conflict.key)
        self.conflict = conflict


def submit(
    transaction: Transaction, ids: JobIds, room: QueueRoom, jobs: Sequence[NewJob]
) -> list[Submitted]:
    """Insert the jobs, or find the ones that their idempotency keys already made.

    Raises:
        Conflict: a key was used before for another request.
        QueueFullError: more would wait than may.
    """
    inserter = _Inserter(transaction, ids)
    taken_in = [_take_in(inserter, job) for job in jobs]
    if inserter.created:
        check_queued(transaction, inserter.limits_version, inserter.created)
        room.check(transaction, Amount(len(inserter.created), inserter.created_bytes))
    for lock in dict.fromkeys(submitted.job.lock_name for submitted in taken_in):
        locks.admit(transaction, lock)
    return [_admitted(transaction, submitted) for submitted in taken_in]


def line_for(needs_preconditions: bool, lock: str | None) -> WaitReason:
    """Where a job waits whose time has come."""
    if needs_preconditions:
        return WaitReason.PRECONDITION
    return WaitReason.QUEUED if lock is None else WaitReason.LOCKED


def _take_in(inserter: _Inserter, job: NewJob) -> Submitted:
    earlier = _earlier(inserter.transaction, job)
    if earlier is not None:
        return Submitted(job=earlier, created=False)
    return Submitted(job=inserter.insert(job), created=True)


def _admitted(transaction: Transaction, submitted: Submitted) -> Submitted:
    """A job with a lock as it is now: admission has decided whether it is locked."""
    if submitted.job.lock_name is None:
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


class _Inserter:
    """Inserts the new jobs of one submission.

    Attributes:
        created: Those that it inserted.
        created_bytes: What was submitted with them.
        limits_version: Of the limits, once there is one.
    """

    def __init__(self, transaction: Transaction, ids: JobIds) -> None:
        self.transaction = transaction
        self.created: list[JobRow] = []
        self.created_bytes = 0
        self.limits_version = 0
        self._ids = ids

    def insert(self, job: NewJob) -> JobRow:
        transaction = self.transaction
        job_id = self._ids.new(transaction.now)
        terms = terms_json(job)
        size_bytes = _size_bytes(job.input_json) + _size_bytes(terms)
        columns = _columns(transaction, job_id, job)
        inserted = transaction.one("insert_job", submitted_bytes=size_bytes, **columns)
        assert inserted is not None
        self.limits_version = inserted[JOB_WIDTH]
        row = job_from(inserted)
        transaction.change(
            "insert_payload",
            sequence=row.sequence,
            input_json=job.input_json,
            terms_json=terms,
        )
        self._insert_beside(row.sequence, job)
        self.created.append(row)
        self.created_bytes += size_bytes
        return row

    def _insert_beside(self, sequence: int, job: NewJob) -> None:
        for name, value in job.labels.items():
            self.transaction.change("insert_label", name=name, value=value, sequence=sequence)
        if job.idempotency is not None:
            self.transaction.change(
                "insert_idempotency",
                workspace=job.workspace,
                key=job.idempotency.key,
                fingerprint=job.idempotency.fingerprint,
                sequence=sequence,
            )


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


def _size_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _by_sequence(transaction: Transaction, sequence: int) -> JobRow:
    row = transaction.one("get_by_sequence", sequence=sequence)
    assert row is not None
    return job_from(row)
