"""Why a job does not run now: found by letting the scheduler's own choice run ahead.

What is said of a turn comes from the same `fair_share` over the same rows as a claim's choice, so
the two cannot disagree. Jobs of other workspaces are counted and never named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headway.core.states import JobState, WaitReason
from headway.store.fair_share import Contention, Rooms, Workspace
from headway.store.jobs import JobRow
from headway.store.limits import WHOLE
from headway.store.sqlite import locks, sharing
from headway.store.sqlite.rows import Row, job_from, progress_from, time_from_us
from headway.store.sqlite.transaction import Transaction
from headway.store.waits import Ahead, HoldRule, RunningJob, Why

FORESIGHT = 1000
"""Starts that are foretold; further ones depend on too much that will happen until then."""
_NAMED = 4
"""Jobs that a sentence names."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a job stands among those who want a resource.

    Attributes:
        overall: 1 is served next; None: not within the foresight, or held by a limit.
        in_workspace: The same among the jobs of its workspace.
        before: What the jobs do that are served before it.
    """

    overall: int | None
    in_workspace: int
    before: tuple[str, ...]


def why(transaction: Transaction, job_id: str) -> Why | None:
    """Why a job is not running, with its place in line."""
    with transaction.snapshot():
        row = transaction.one("get", id=job_id)
        if row is None:
            return None
        job = job_from(row)
        if job.state is not JobState.PENDING:
            return Why(state=job.state, reason=None, text=_text_of_state(job))
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
    contention, rooms = sharing.lane_future(transaction, job.lane)
    sharers = len(contention.workspaces)
    place = _place(contention, job)
    if place.overall is None and (held := _limit_that_holds(rooms, job)) is not None:
        contention, _ = sharing.lane_future(transaction, job.lane)
        return _why_limited(transaction, job, held, contention)
    running = [row for row in transaction.all("running_jobs") if row[2] == job.lane]
    position = place.in_workspace
    if place.overall is None:
        position = _counted_position(transaction, job)
    return Why(
        state=job.state,
        reason=job.wait_reason,
        rule=HoldRule.TURN,
        position=position,
        lane_position=place.overall,
        lock=job.lock_name,
        text=f"{_turn_words(job, place, position, sharers)}; {_running_words(job, running)}",
        ahead=None
        if place.overall is None
        else Ahead(running=_running_jobs(job, running), operations=place.before),
    )


def _why_locked(transaction: Transaction, job: JobRow) -> Why:
    lock = job.lock_name
    assert lock is not None
    contention, rooms = sharing.lock_future(transaction, lock)
    place = _place(contention, job)
    if place.overall is None and (held := _limit_that_holds(rooms, job)) is not None:
        contention, _ = sharing.lock_future(transaction, lock)
        return _why_limited(transaction, job, held, contention)
    holders = [row for row in transaction.all("running_jobs") if row[5] == lock]
    places = locks.places(transaction, lock)
    return Why(
        state=job.state,
        reason=job.wait_reason,
        rule=HoldRule.LOCK,
        position=place.overall,
        lock=lock,
        holders=tuple(row[0] for row in holders if row[3] == job.workspace),
        text=f"it is {_line_words(place)} {_lock_words(job)}, which is"
        f" {_held_words(job, holders, places)}",
        ahead=None
        if place.overall is None
        else Ahead(running=_running_jobs(job, holders), operations=place.before, places=places),
    )


def _why_limited(transaction: Transaction, job: JobRow, user: str, contention: Contention) -> Why:
    """A running limit, of the workspace or (`user`) of the user in it, holds the job."""
    limit = transaction.limits().max_running(job.workspace, user)
    assert limit is not None
    place = _place_alone(contention, job, user)
    running = [
        row
        for row in transaction.all("running_jobs")
        if row[3] == job.workspace and user in (WHOLE, row[4])
    ]
    whose = f"workspace {job.workspace!r}" if user == WHOLE else f"{user!r}"
    where = "" if user == WHOLE else f" in workspace {job.workspace!r}"
    before = (place.overall or 1) - 1
    queue = f", and {_jobs(before)} of the same limit {_go(before)} before it" if before else ""
    return Why(
        state=job.state,
        reason=job.wait_reason,
        rule=HoldRule.WORKSPACE_LIMIT if user == WHOLE else HoldRule.USER_LIMIT,
        position=place.overall,
        lock=job.lock_name,
        text=f"{whose} may run {_jobs(limit)} at a time{where} and runs {len(running)}{queue}",
        ahead=Ahead(running=_running_jobs(job, running), operations=place.before, places=limit)
        if limit and place.overall is not None
        else None,
    )


def _why_not_ready(job: JobRow) -> Why:
    until = f" until {job.run_at.isoformat(timespec='seconds')}" if job.run_at else ""
    detail = f": {job.wait_detail}" if job.wait_detail else ""
    rules = {
        WaitReason.SCHEDULED: (
            HoldRule.SCHEDULED,
            f"it is not to run before its time; it waits{until}",
        ),
        WaitReason.BACKOFF: (
            HoldRule.BACKOFF,
            f"attempt {job.attempt} did not succeed and it waits{until}{detail}",
        ),
        WaitReason.PRECONDITION: (
            HoldRule.PRECONDITION,
            f"it waits for a precondition{detail}",
        ),
    }
    assert job.wait_reason is not None
    rule, text = rules[job.wait_reason]
    return Why(state=job.state, reason=job.wait_reason, rule=rule, until=job.run_at, text=text)


# --- running ahead --------------------------------------------------------------------------------


def _place(contention: Contention, job: JobRow) -> _Place:
    """Serve until it is the job's turn."""
    before: list[str] = []
    own = 0
    for overall, pick in enumerate(contention.picks(FORESIGHT), start=1):
        own += pick.workspace == job.workspace
        if pick.job.sequence == job.sequence:
            return _Place(overall, own, tuple(before))
        before.append(pick.job.operation)
    return _Place(None, own, ())


def _place_alone(contention: Contention, job: JobRow, user: str) -> _Place:
    """The job's place among the jobs that its limit counts, as if there were no limit."""
    lines = []
    for each in contention.workspaces:
        if each.name == job.workspace:
            alone = Workspace(each.name, each.tag, each.clock, each.weight)
            alone.lines = [line for line in each.lines if user in (WHOLE, line.user)]
            lines.append(alone)
    return _place(Contention(None, lines, Rooms()), job)


def _limit_that_holds(rooms: Rooms, job: JobRow) -> str | None:
    """Whose room is used up once all before it were served: `WHOLE`, the user's, or nobody's."""
    if rooms.of(job.workspace) <= 0:
        return WHOLE
    if rooms.of(job.workspace, job.created_by) <= 0:
        return job.created_by
    return None


def _counted_position(transaction: Transaction, job: JobRow) -> int:
    """The job's rank by priority and age in its workspace, for one that is far back."""
    row = transaction.one(
        "workspace_position",
        lane=job.lane,
        workspace=job.workspace,
        priority=job.priority,
        sequence=job.sequence,
    )
    assert row is not None
    position: int = row[0]
    return position


def _running_jobs(job: JobRow, rows: Iterable[Row]) -> tuple[RunningJob, ...]:
    return tuple(
        RunningJob(
            id=row[0] if row[3] == job.workspace else None,
            operation=row[1],
            started_at=time_from_us(row[6]),
            fraction=None if row[7] is None else progress_from(row[7]).fraction,
        )
        for row in rows
    )


# --- words ----------------------------------------------------------------------------------------


def _turn_words(job: JobRow, place: _Place, position: int, sharers: int) -> str:
    lane = f"the {job.lane} lane"
    if place.overall is None:
        return f"it is about number {position} of its workspace in the queue of {lane}"
    if place.overall == 1:
        return f"it is the next job of {lane}"
    if sharers == 1:
        return f"it is number {place.overall} in the queue of {lane}"
    return (
        f"it is number {position} of its workspace, and number {place.overall} in the queue of"
        f" {lane}, which {sharers} workspaces share"
    )


def _running_words(job: JobRow, running: Sequence[Row]) -> str:
    if not running:
        return "nothing runs there now, so that a worker takes it at once, if there is one"
    return f"{_jobs(len(running))} {_run(len(running))} there now: {_names(job, running)}"


def _line_words(place: _Place) -> str:
    return (
        "far back in line for" if place.overall is None else f"number {place.overall} in line for"
    )


def _lock_words(job: JobRow) -> str:
    if job.lock_name == job.concurrency_key:
        return f"{job.lock_name!r}"
    return f"the lock {job.lock_name!r} (of the key {job.concurrency_key!r})"


def _held_words(job: JobRow, holders: Sequence[Row], places: int) -> str:
    if not holders:
        return "about to be taken by the job before it"
    count = f" ({len(holders)} of {places} places)" if places > 1 else ""
    return f"held by {_names(job, holders)}{count}"


def _names(job: JobRow, rows: Sequence[Row]) -> str:
    own = [row[0] for row in rows if row[3] == job.workspace]
    others = len(rows) - len(own)
    names = own[:_NAMED]
    if len(own) > _NAMED:
        names.append(f"{len(own) - _NAMED} more")
    if others:
        names.append(f"{others} of other workspaces")
    return ", ".join(names)


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"


def _run(count: int) -> str:
    return "runs" if count == 1 else "run"


def _go(count: int) -> str:
    return "goes" if count == 1 else "go"
