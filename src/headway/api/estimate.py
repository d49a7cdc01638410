"""When a waiting job will probably start (N5, J25).

An estimate from measured run times: those that run now end when their progress, or the usual time
of their operation, says; those before it start in the order in which the scheduler would take them
now, as many at a time as run now, and take their usual time. Where one of them has no history
there is no estimate. New jobs, limits that change and failures make it wrong.
"""

from __future__ import annotations

import heapq
import statistics
from datetime import datetime, timedelta

from headway.core.states import JobState
from headway.store.jobs import JobQuery
from headway.store.store import Store
from headway.store.waits import HoldRule, RunningJob, Why

_LEAST_FRACTION = 0.02
"""Below it the fraction is mostly start-up, and dividing by it gives any number."""
_RECENT_JOBS = 10
_MAX_OPERATIONS = 20
"""Kinds of jobs before it whose usual time is looked up."""


async def estimated_start(store: Store, why: Why, now: datetime) -> datetime | None:
    """When the job is expected to run; None: it waits for no turn, or nobody can tell.

    Args:
        store: Has the run times.
        why: Why the job waits.
        now: UTC.
    """
    ahead = why.ahead
    if ahead is None or (why.rule is HoldRule.TURN and not ahead.running):
        return None  # where nothing runs, nobody knows whether there is a worker
    operations = {each.operation for each in ahead.running} | set(ahead.operations)
    if len(operations) > _MAX_OPERATIONS:
        return None
    usual = {name: await _usual_duration(store, name) for name in sorted(operations)}
    for each in ahead.running:  # the first run of an operation tells by its progress
        usual[each.operation] = usual[each.operation] or _duration_by_progress(each, now)
    free_at = [_end_of(each, usual[each.operation], now) for each in ahead.running]
    if any(each is None for each in free_at):
        return None
    known = [each for each in free_at if each is not None]
    places = max(1, len(known) if ahead.places is None else ahead.places)
    # Fewer run than may: the other places are free now. More: the first to end free none.
    known += [now] * (places - len(known))
    known = sorted(known)[len(known) - places :]
    return _start_after(known, [usual[name] for name in ahead.operations])


def _start_after(free_at: list[datetime], durations: list[timedelta | None]) -> datetime | None:
    """When a place is free for the one who comes after jobs of these durations."""
    heapq.heapify(free_at)
    for duration in durations:
        if duration is None:
            return None
        heapq.heappush(free_at, heapq.heappop(free_at) + duration)
    return free_at[0]


def _end_of(job: RunningJob, usual: timedelta | None, now: datetime) -> datetime | None:
    total = _duration_by_progress(job, now) or usual
    return None if total is None else max(job.started_at + total, now)


def _duration_by_progress(job: RunningJob, now: datetime) -> timedelta | None:
    if job.fraction is None or job.fraction < _LEAST_FRACTION:
        return None
    return (now - job.started_at) / job.fraction


async def _usual_duration(store: Store, operation: str) -> timedelta | None:
    """The median of the operation's last jobs that succeeded, of whatever workspace."""
    query = JobQuery(states=(JobState.SUCCEEDED,), operation=operation, limit=_RECENT_JOBS)
    took_s = [
        (job.ended_at - job.started_at).total_seconds()
        for job in (await store.list_jobs(query)).jobs
        if job.ended_at and job.started_at
    ]
    return timedelta(seconds=statistics.median(took_s)) if took_s else None
