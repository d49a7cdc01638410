"""The store's values as the API shows them."""

from __future__ import annotations

import json
from datetime import datetime

from headway.client.models import Event, Job, JobError, Progress, Why
from headway.core.failure import ErrorInfo
from headway.store import jobs, waits


def job_view(row: jobs.JobRow) -> Job:
    """A job's row as a client sees it."""
    return Job(
        id=row.id,
        operation=row.operation,
        lane=row.lane,
        state=row.state,
        outcome=row.outcome,
        wait_reason=row.wait_reason,
        wait_detail=row.wait_detail,
        run_at=row.run_at,
        priority=row.priority,
        attempt=row.attempt,
        released=row.released,
        crashes=row.crashes,
        timeout_s=row.timeout_s,
        concurrency_key=row.concurrency_key,
        labels=dict(row.labels),
        created_by=row.created_by,
        workspace=row.workspace,
        cancel_requested_at=row.cancel_requested_at,
        created_at=row.created_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        progress=None if row.progress is None else progress_view(row.progress),
        error=None if row.error is None else error_view(row.error),
        retry_of=row.retry_of,
    )


def progress_view(progress: jobs.Progress) -> Progress:
    return Progress(
        fraction=progress.fraction, message=progress.message, numbers=dict(progress.numbers)
    )


def error_view(error: ErrorInfo) -> JobError:
    return JobError(
        type=error.type,
        message=error.message,
        traceback=error.traceback,
        cause=None if error.cause is None else error_view(error.cause),
    )


def event_view(event: jobs.Event) -> Event:
    return Event(
        number=event.number,
        at=event.at,
        kind=event.kind,
        attempt=event.attempt,
        detail=json.loads(event.data_json),
    )


def why_view(job_id: str, why: waits.Why, estimated_start: datetime | None = None) -> Why:
    return Why(
        job_id=job_id,
        state=why.state,
        reason=why.reason,
        text=why.text,
        rule=why.rule,
        position=why.position,
        lane_position=why.lane_position,
        lock=why.lock,
        holders=list(why.holders),
        until=why.until,
        estimated_start=estimated_start,
    )
