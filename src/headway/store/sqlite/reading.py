"""Plain reads."""

from __future__ import annotations

from datetime import datetime

from headway.core.states import JobState, Outcome, WaitReason
from headway.store.attempts import Claim
from headway.store.counts import Count, Counts, Ended
from headway.store.jobs import AttemptRow, Event, Payload, StoredResult
from headway.store.sqlite.claiming import claim_from
from headway.store.sqlite.rows import (
    attempt_from,
    event_from,
    payload_from,
    result_from,
    time_from_us,
)
from headway.store.sqlite.transaction import Transaction


def payload(transaction: Transaction, job_id: str) -> Payload | None:
    row = transaction.one("payload", id=job_id)
    return None if row is None else payload_from(*row)


def result(transaction: Transaction, job_id: str) -> StoredResult | None:
    row = transaction.one("result", id=job_id)
    return None if row is None else result_from(row)


def events(transaction: Transaction, job_id: str, after: int, limit: int) -> list[Event]:
    rows = transaction.all("events", id=job_id, after=after, limit=limit)
    return [event_from(row) for row in rows]


def attempts(transaction: Transaction, job_id: str) -> list[AttemptRow]:
    return [attempt_from(row) for row in transaction.all("attempts", id=job_id)]


def running(transaction: Transaction, owner: str) -> list[Claim]:
    return [claim_from(row) for row in transaction.all("running", owner=owner)]


def cancel_requested(transaction: Transaction, owner: str) -> list[Claim]:
    return [claim_from(row) for row in transaction.all("cancel_requested", owner=owner)]


def owners(transaction: Transaction) -> list[str]:
    return [row[0] for row in transaction.all("owners")]


def any_lease_over(transaction: Transaction) -> bool:
    return transaction.one("lease_over", now_ns=transaction.now_ns) is not None


def next_run_at(transaction: Transaction) -> datetime | None:
    row = transaction.one("next_run_at")
    return None if row is None else time_from_us(row[0])


def counts(transaction: Transaction) -> Counts:
    """Totals of live jobs, counted, and of ended ones, kept."""
    live = tuple(
        Count(
            operation=operation,
            lane=lane,
            state=JobState(state),
            wait_reason=None if wait_reason is None else WaitReason(wait_reason),
            jobs=jobs,
        )
        for operation, lane, state, wait_reason, jobs in transaction.all("count_live")
    )
    ended = tuple(
        Ended(operation=operation, outcome=Outcome(outcome), jobs=jobs)
        for operation, outcome, jobs in transaction.all("count_ended")
    )
    return Counts(live=live, ended=ended)
