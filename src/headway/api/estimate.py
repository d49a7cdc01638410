"""When a job that waits for another's concurrency key will run (N5, J25).

An estimate, from two sources: how far the holder says it is, and how long the last jobs of the same
operation took. Where neither tells anything there is none.
"""

from __future__ import annotations

import statistics
from datetime import datetime, timedelta

from headway.core.states import JobState, WaitReason
from headway.store.store import Store
from headway.store.values import JobQuery, JobRow, Why

_LEAST_FRACTION = 0.02
"""Below it the fraction is mostly start-up, and dividing by it gives any number."""
_RECENT_JOBS = 10


async def estimated_start(store: Store, why: Why, now: datetime) -> datetime | None:
    """When the job is expected to run; None: it waits for no key, or nobody can tell.

    Args:
        store: Has the holder and its predecessors.
        why: Why the job waits.
        now: UTC.
    """
    if why.reason is not WaitReason.LOCKED or len(why.holders) != 1 or why.position is None:
        return None
    holder = await store.find(why.holders[0])
    if not isinstance(holder, JobRow) or holder.started_at is None:
        return None
    usual = await _usual_duration(store, holder)
    total = _duration_by_progress(holder, now) or usual
    if total is None:
        return None
    left = max(holder.started_at + total - now, timedelta())
    # Those in line before it will take as long as such jobs usually do.
    return now + left + (why.position - 1) * (usual or total)


def _duration_by_progress(holder: JobRow, now: datetime) -> timedelta | None:
    fraction = holder.progress.fraction if holder.progress else None
    if fraction is None or fraction < _LEAST_FRACTION or holder.started_at is None:
        return None
    return (now - holder.started_at) / fraction


async def _usual_duration(store: Store, holder: JobRow) -> timedelta | None:
    """The median of the last jobs of the same operation that succeeded."""
    query = JobQuery(
        states=(JobState.SUCCEEDED,),
        operation=holder.operation,
        workspace=holder.workspace,
        limit=_RECENT_JOBS,
    )
    page = await store.list_jobs(query)
    took_s = [
        (job.ended_at - job.started_at).total_seconds()
        for job in page.jobs
        if job.ended_at and job.started_at
    ]
    return timedelta(seconds=statistics.median(took_s)) if took_s else None
