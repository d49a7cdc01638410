"""Why jobs wait, and the end of waiting for preconditions."""

from __future__ import annotations

from headway.core.failure import ErrorInfo
from headway.core.states import JobState, Outcome, WaitReason
from headway.store.events import EventKind
from headway.store.sqlite import keys
from headway.store.sqlite.ending import end_job
from headway.store.sqlite.rows import JOB_WIDTH, job_from, terms_from, time_from_us
from headway.store.sqlite.submission import line_for
from headway.store.sqlite.transaction import Transaction
from headway.store.values import Finish, JobRow, Waiting, Why


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
    sequence, concurrency_key = row
    transaction.change(
        "make_wait",
        sequence=sequence,
        wait_reason=line_for(False, concurrency_key),
        wait_detail=None,
        needs_preconditions=False,
        now_us=transaction.now_us,
    )
    transaction.event(sequence, EventKind.READY)
    keys.admit(transaction, concurrency_key)
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


def why(transaction: Transaction, job_id: str) -> Why | None:
    """Why a job is not running, with its place in line."""
    row = transaction.one("get", id=job_id)
    if row is None:
        return None
    job = job_from(row)
    if job.state is not JobState.PENDING:
        return Why(state=job.state, reason=None, text=_text_of_state(job))
    assert job.wait_reason is not None
    if job.wait_reason is WaitReason.QUEUED:
        return _why_queued(transaction, job)
    if job.wait_reason is WaitReason.LOCKED:
        return _why_locked(transaction, job)
    return _why_not_ready(job)


def _text_of_state(job: JobRow) -> str:
    if job.state is JobState.RUNNING:
        stopping = " and its cancel was asked for" if job.cancel_requested_at else ""
        return f"it is running (attempt {job.attempt}){stopping}"
    return f"it has ended: {job.outcome}"


def _why_queued(transaction: Transaction, job: JobRow) -> Why:
    position = _count(
        transaction.one(
            "lane_position", lane=job.lane, priority=job.priority, sequence=job.sequence
        )
    )
    return Why(
        state=job.state,
        reason=job.wait_reason,
        position=position,
        text=f"it is number {position} in the queue of the {job.lane} lane",
    )


def _why_locked(transaction: Transaction, job: JobRow) -> Why:
    key = job.concurrency_key
    holders = tuple(row[0] for row in transaction.all("key_holders", key=key))
    position = _count(
        transaction.one("key_position", key=key, priority=job.priority, sequence=job.sequence)
    )
    held = f"held by {', '.join(holders)}" if holders else "about to be taken by the job before it"
    return Why(
        state=job.state,
        reason=job.wait_reason,
        position=position,
        holders=holders,
        text=f"it is number {position} in line for {key!r}, which is {held}",
    )


def _why_not_ready(job: JobRow) -> Why:
    until = f" until {job.run_at.isoformat(timespec='seconds')}" if job.run_at else ""
    detail = f": {job.wait_detail}" if job.wait_detail else ""
    texts = {
        WaitReason.SCHEDULED: f"it is not to run before its time; it waits{until}",
        WaitReason.BACKOFF: f"attempt {job.attempt} did not succeed and it waits{until}{detail}",
        WaitReason.PRECONDITION: f"it waits for a precondition{detail}",
    }
    assert job.wait_reason is not None
    return Why(
        state=job.state,
        reason=job.wait_reason,
        until=job.run_at,
        text=texts[job.wait_reason],
    )


def _count(row: tuple[int] | None) -> int:
    assert row is not None
    return row[0]
