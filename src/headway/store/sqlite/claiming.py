"""Handing jobs to workers, and keeping the workers' leases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headway.core.clock import ns_from_s
from headway.store.attempts import Claim, ClaimedJob
from headway.store.events import EventKind
from headway.store.fair_share import Pick
from headway.store.jobs import Progress
from headway.store.sqlite import locks, sharing
from headway.store.sqlite.rows import JOB_WIDTH, Row, job_from, payload_from, time_from_us, to_json
from headway.store.sqlite.submission import line_for
from headway.store.sqlite.transaction import Transaction

_DUE_AT_ONCE = 1000
"""Timers made ready in one transaction; the next one takes the rest."""


def claim(
    transaction: Transaction, owner: str, lanes: Mapping[str, int], lease_s: float
) -> list[ClaimedJob]:
    """Make due jobs ready, then take those of each lane whose turn it is."""
    until_ns = transaction.now_ns + ns_from_s(lease_s)
    claimed: list[ClaimedJob] = []
    left = dict(lanes)
    while True:
        survey, picks = _choose(transaction, left)
        claimed += _take(transaction, owner, picks, until_ns)
        # A lock that was passed on may have made more jobs ready for the slots that are left.
        if not _pass_locks_on(transaction, survey, picks):
            return claimed
        left = {lane: most - sum(each.job.lane == lane for each in claimed)
                for lane, most in lanes.items()}  # fmt: skip


def _take(
    transaction: Transaction, owner: str, picks: Sequence[Pick], until_ns: int
) -> list[ClaimedJob]:
    """Make the chosen jobs running."""
    if not picks:
        return []
    rows = transaction.all(
        "claim",
        owner=owner,
        chosen_json=to_json([pick.job.sequence for pick in picks]),
        lease_until_ns=until_ns,
        now_us=transaction.now_us,
    )
    # RETURNING gives no order.
    by_sequence = {row[0]: row for row in rows}
    return [_claimed(by_sequence[pick.job.sequence], until_ns) for pick in picks]


def _choose(
    transaction: Transaction, lanes: Mapping[str, int]
) -> tuple[sharing.Survey, list[Pick]]:
    """Who is claimed, in order; their shares are charged."""
    most = max(lanes.values(), default=0)
    survey = sharing.survey(transaction, list(lanes), most)
    if survey.timers_due:
        make_due_ready(transaction)
        survey = sharing.survey(transaction, list(lanes), most)
    picks: list[Pick] = []
    for lane, contention in survey.lanes.items():
        picks += contention.picks(lanes[lane])
        sharing.save(transaction, sharing.lane_resource(lane), contention)
    for pick in picks:
        if pick.job.lock_name is not None:
            locks.charge(transaction, pick.job.lock_name, pick.workspace, pick.user)
    return survey, picks


def _pass_locks_on(transaction: Transaction, survey: sharing.Survey, picks: Sequence[Pick]) -> bool:
    """Whoever has reached a running limit waits at the head of no lock's line any more.

    Returns:
        Whether another job is at the head of one now.
    """
    if not survey.book.limits_running:
        return False
    passed_on = False
    for workspace, user in dict.fromkeys((pick.workspace, pick.user) for pick in picks):
        if survey.rooms.of(workspace) <= 0 or survey.rooms.of(workspace, user) <= 0:
            passed_on |= locks.admit_waiting_of(transaction, workspace)
    return passed_on


def make_due_ready(transaction: Transaction) -> None:
    """Move jobs whose time has come into the line where they wait next."""
    due = transaction.all("due", now_us=transaction.now_us, limit=_DUE_AT_ONCE)
    for sequence, needs_preconditions, lock in due:
        transaction.change(
            "make_wait",
            sequence=sequence,
            wait_reason=line_for(bool(needs_preconditions), lock),
            wait_detail=None,
            now_us=transaction.now_us,
            needs_preconditions=needs_preconditions,
        )
        transaction.event(sequence, EventKind.READY)
    for lock in dict.fromkeys(row[2] for row in due):
        locks.admit(transaction, lock)


def end_future_backoffs(transaction: Transaction) -> int:
    """Make backoffs that began in the future due; how many."""
    return transaction.change("end_future_backoffs", now_us=transaction.now_us)


def renew(transaction: Transaction, claims: Sequence[Claim], lease_s: float) -> list[Claim]:
    """Prolong leases; the refused claims."""
    until_ns = transaction.now_ns + ns_from_s(lease_s)
    return [
        claim
        for claim in claims
        if not transaction.change("renew", lease_until_ns=until_ns, **fence(claim))
    ]


def set_progress(transaction: Transaction, claim: Claim, progress: Progress) -> bool:
    changed = transaction.change("set_progress", progress_json=to_json(progress), **fence(claim))
    return changed == 1


def add_event(transaction: Transaction, claim: Claim, kind: str, data_json: str) -> bool:
    row = transaction.one("current", **fence(claim))
    if row is None:
        return False
    transaction.event(row[0], kind, claim.attempt, data_json)
    return True


def fence(claim: Claim) -> dict[str, str | int]:
    """The parameters by which a query recognises the current attempt."""
    return {"job_id": claim.job_id, "attempt": claim.attempt, "owner": claim.owner}


def claim_from(row: Row) -> Claim:
    job_id, attempt, owner = row
    return Claim(job_id=job_id, attempt=attempt, owner=owner)


def _claimed(row: Row, until_ns: int) -> ClaimedJob:
    job = job_from(row)
    assert job.owner is not None
    waiting_since_us, input_json, terms_json = row[JOB_WIDTH:]
    return ClaimedJob(
        claim=Claim(job_id=job.id, attempt=job.attempt, owner=job.owner),
        job=job,
        payload=payload_from(input_json, terms_json),
        lease_until_ns=until_ns,
        ready_at=time_from_us(waiting_since_us),
    )
