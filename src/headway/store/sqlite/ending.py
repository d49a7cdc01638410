"""Every way in which an attempt, or a job, ends: one function a transition."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from headway.core.failure import ErrorInfo
from headway.core.retry import Verdict
from headway.core.states import JobState, Outcome, WaitReason, state_of
from headway.store.attempts import AttemptEnd, Claim, Finish, Release, Rescued, RetryLater
from headway.store.events import EventKind
from headway.store.jobs import CancelResult, JobRow, Payload, Usage
from headway.store.sqlite import locks
from headway.store.sqlite.claiming import fence
from headway.store.sqlite.limits import left_running
from headway.store.sqlite.rows import (
    JOB_WIDTH,
    Row,
    job_from,
    optional_json,
    payload_from,
    to_json,
    us_from_time,
)
from headway.store.sqlite.submission import line_for
from headway.store.sqlite.transaction import Transaction


def end_attempt(transaction: Transaction, claim: Claim, end: AttemptEnd) -> JobRow | None:
    """End the current attempt as `end` says; None when `claim` is stale."""
    if isinstance(end, Finish):
        return _finish_attempt(transaction, claim, end)
    row = transaction.one("current", **fence(claim))
    return None if row is None else _end(transaction, job_from(row), end)


def request_cancel(transaction: Transaction, job_id: str, by: str) -> CancelResult:
    """Cancel a waiting job; store the intent for a running one."""
    row = transaction.one("get", id=job_id)
    if row is None:
        return CancelResult.NOT_FOUND
    job = job_from(row)
    if job.state.is_terminal:
        return CancelResult.ALREADY_ENDED
    transaction.change("flag_cancel", sequence=job.sequence, now_us=transaction.now_us)
    if job.cancel_requested_at is None:
        transaction.event(
            job.sequence, EventKind.CANCEL_REQUESTED, job.attempt, to_json({"by": by})
        )
    if job.state is JobState.RUNNING:
        return CancelResult.REQUESTED
    end_job(transaction, job, Finish(outcome=Outcome.CANCELLED))
    return CancelResult.CANCELLED


def rescue(
    transaction: Transaction, dead_owners: Sequence[str], rng: random.Random
) -> list[Rescued]:
    """End the attempts that nobody keeps alive, each by its job's policy."""
    lost = {row[0]: row for row in transaction.all("lease_over", now_ns=transaction.now_ns)}
    reasons = dict.fromkeys(lost, "its lease was not renewed in time")
    for owner in dead_owners:
        for row in transaction.all("owned", owner=owner):
            lost[row[0]] = row
            reasons[row[0]] = "the process that ran it died"
    return [
        _rescue(transaction, job_from(row), reasons[sequence], rng)
        for sequence, row in lost.items()
    ]


def end_job(transaction: Transaction, job: JobRow, finish: Finish) -> JobRow:
    """Make a live job terminal; its attempt, if it has one, was recorded by the caller."""
    row = transaction.one("end_job", sequence=job.sequence, **_final(transaction, finish))
    assert row is not None, "a terminal job was about to be overwritten"
    return _ended(transaction, row, finish, job.state is JobState.RUNNING)


def _finish_attempt(transaction: Transaction, claim: Claim, finish: Finish) -> JobRow | None:
    """`_end` for what most attempts come to, in fewer statements.

    After each one the store's thread has to queue for Python's lock.
    """
    row = transaction.one("finish_attempt", **fence(claim), **_final(transaction, finish))
    if row is None:
        return None
    job = _ended(transaction, row, finish, was_running=True)
    _record(transaction, job, claim.owner, finish.outcome, finish.error, finish.usage)
    return job


def _final(transaction: Transaction, finish: Finish) -> dict[str, Any]:
    """What a job's row has when the job has ended."""
    result = finish.result
    return {
        "state": state_of(finish.outcome),
        "outcome": finish.outcome,
        "error_json": optional_json(finish.error),
        "crashed": finish.crashed,
        "kept_bytes": finish.kept_bytes + (len(result.json or "") if result else 0),
        "now_us": transaction.now_us,
    }


def _ended(transaction: Transaction, row: Row, finish: Finish, was_running: bool) -> JobRow:
    """What else belongs to a job's end, from the row that says so."""
    job = job_from(row)
    if finish.result is not None:
        transaction.change(
            "insert_result",
            sequence=job.sequence,
            json=finish.result.json,
            file=finish.result.file,
        )
    locks.admit(transaction, job.lock_name)
    if was_running:
        left_running(transaction, row[JOB_WIDTH], job)
    return job


def _end(transaction: Transaction, job: JobRow, end: AttemptEnd) -> JobRow:
    assert job.owner is not None
    if isinstance(end, Finish):
        _record(transaction, job, job.owner, end.outcome, end.error, end.usage)
        return end_job(transaction, job, end)
    if isinstance(end, RetryLater):
        _record(transaction, job, job.owner, end.outcome, end.error, end.usage)
    else:
        _record(transaction, job, job.owner, None, None, end.usage)
    if job.cancel_requested_at is not None:
        # It would run again, but somebody wants it gone: the durable intent decides.
        crashed = isinstance(end, RetryLater) and end.crashed
        cancelled = Finish(outcome=Outcome.CANCELLED, kept_bytes=end.kept_bytes, crashed=crashed)
        return end_job(transaction, job, cancelled)
    return _again(transaction, job, end)


def _again(transaction: Transaction, job: JobRow, end: RetryLater | Release) -> JobRow:
    """Back to PENDING."""
    line = line_for(False, job.lock_name)
    if isinstance(end, Release):
        kind, data = EventKind.RELEASED, to_json({"reason": end.reason})
        wait, run_at_us, error, crashed = line, None, job.error, False
    else:
        kind = EventKind.RETRY
        data = to_json({"reason": end.reason, "delay_s": round(end.delay_s, 3)})
        wait = WaitReason.BACKOFF if end.delay_s > 0 else line
        run_at = transaction.now + timedelta(seconds=end.delay_s)
        run_at_us = us_from_time(run_at) if end.delay_s > 0 else None
        error, crashed = end.error, end.crashed
    row = transaction.one(
        "requeue",
        sequence=job.sequence,
        wait_reason=wait,
        wait_detail=end.reason,
        run_at_us=run_at_us,
        error_json=optional_json(error),
        crashed=crashed,
        released=isinstance(end, Release),
        kept_bytes=end.kept_bytes,
        now_us=transaction.now_us,
    )
    assert row is not None, "only a running attempt can be put back"
    transaction.event(job.sequence, kind, job.attempt, data)
    locks.admit(transaction, job.lock_name)
    left_running(transaction, row[JOB_WIDTH], job)
    return job_from(row)


def _record(
    transaction: Transaction,
    job: JobRow,
    owner: str,
    outcome: Outcome | None,
    error: ErrorInfo | None,
    usage: Usage | None,
) -> None:
    assert job.started_at is not None
    transaction.change(
        "insert_attempt",
        sequence=job.sequence,
        attempt=job.attempt,
        owner=owner,
        started_at_us=us_from_time(job.started_at),
        ended_at_us=transaction.now_us,
        outcome=outcome,
        error_json=optional_json(error),
        usage_json=optional_json(usage),
    )


def _rescue(transaction: Transaction, job: JobRow, reason: str, rng: random.Random) -> Rescued:
    assert job.owner is not None
    transaction.event(job.sequence, EventKind.RESCUED, job.attempt, to_json({"reason": reason}))
    end = _after_loss(job, _payload(transaction, job), reason, rng)
    after = _end(transaction, job, end)
    claim = Claim(job_id=job.id, attempt=job.attempt, owner=job.owner)
    return Rescued(claim=claim, state=after.state, reason=reason)


def _after_loss(
    job: JobRow, payload: Payload, reason: str, rng: random.Random
) -> Finish | RetryLater:
    error = ErrorInfo(type="WorkerLost", message=f"attempt {job.attempt} was lost: {reason}")
    crashes = job.crashes + 1
    verdict = payload.retry.after_crash(job.attempt - job.released, crashes)
    if verdict is Verdict.AGAIN:
        return RetryLater(
            outcome=Outcome.WORKER_LOST,
            delay_s=payload.retry.crash_delay_s(crashes, rng),
            reason=error.message,
            error=error,
            crashed=True,
        )
    if job.cancel_requested_at is not None:
        return Finish(outcome=Outcome.CANCELLED, error=error, crashed=True)
    outcome = Outcome.QUARANTINED if verdict is Verdict.QUARANTINED else Outcome.WORKER_LOST
    return Finish(outcome=outcome, error=error, crashed=True)


def _payload(transaction: Transaction, job: JobRow) -> Payload:
    row = transaction.one("payload_by_sequence", sequence=job.sequence)
    assert row is not None
    return payload_from(*row)
