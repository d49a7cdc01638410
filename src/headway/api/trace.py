"""A job's phases in the trace-event format, which chrome://tracing and Perfetto display (J15)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise

from pydantic import BaseModel, JsonValue

from headway.store.jobs import AttemptRow, JobRow

_US_PER_S = 1_000_000


class TraceEvent(BaseModel):
    """One complete event (`ph` X) of the trace-event format; times in microseconds."""

    name: str
    ph: str = "X"
    ts: float
    dur: float
    pid: int = 1
    tid: int
    args: dict[str, JsonValue] = {}


class TraceDocument(BaseModel):
    """A whole trace; the names of its fields are the format's own."""

    traceEvents: list[TraceEvent]  # noqa: N815 -- the format's name
    displayTimeUnit: str = "ms"  # noqa: N815 -- the format's name


def trace_of(row: JobRow, attempts: Sequence[AttemptRow], now: datetime) -> TraceDocument:
    """The job as one track for its waiting and one track for each attempt's phases."""
    events = list(_waits(row, attempts, now))
    for attempt in attempts:
        events.extend(_phases(attempt))
    return TraceDocument(traceEvents=events)


def _waits(row: JobRow, attempts: Sequence[AttemptRow], now: datetime) -> Iterator[TraceEvent]:
    since = row.created_at
    for attempt in attempts:
        yield _event("waited", since, attempt.started_at, 0)
        since = attempt.ended_at
    if row.state.is_terminal:
        return
    if row.attempt > len(attempts) and row.started_at is not None:
        yield _event("waited", since, row.started_at, 0)
        yield _event("running", row.started_at, now, row.attempt)
    else:
        yield _event("waiting", since, now, 0)


def _phases(attempt: AttemptRow) -> Iterator[TraceEvent]:
    outcome = None if attempt.outcome is None else attempt.outcome.value
    whole = _event("attempt", attempt.started_at, attempt.ended_at, attempt.attempt)
    yield whole.model_copy(update={"args": {"outcome": outcome, "owner": attempt.owner}})
    if attempt.usage is None:
        return
    marks = sorted(attempt.usage.timeline.items(), key=lambda mark: mark[1])
    for (name, start_s), (_, end_s) in pairwise(marks):
        yield TraceEvent(
            name=name,
            ts=start_s * _US_PER_S,
            dur=(end_s - start_s) * _US_PER_S,
            tid=attempt.attempt,
        )


def _event(name: str, start: datetime, end: datetime, track: int) -> TraceEvent:
    start_us = start.timestamp() * _US_PER_S
    return TraceEvent(
        name=name, ts=start_us, dur=max(0.0, end.timestamp() * _US_PER_S - start_us), tid=track
    )
