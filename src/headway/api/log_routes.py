"""Routes that read a job's logs: as plain text, and as a live stream."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from headway.api.identity import Caller
from headway.api.job_access import JobAccess
from headway.api.job_routes import JobReference
from headway.api.limits import Limits
from headway.api.log_files import POSITION_PATTERN, JobLogs, LogPosition
from headway.api.log_stream import LogStreams
from headway.api.problems import problem_answers
from headway.api.stream_places import StreamPlaces
from headway.store.jobs import JobRow

MAX_TAIL_LINES = 100_000
POSITION_HEADER = "headway-log-position"


class EventStream(StreamingResponse):
    """Server-sent events."""

    media_type = "text/event-stream"


class LogKind(StrEnum):
    """Which of an attempt's two logs."""

    OUTPUT = "output"
    """What the attempt and its descendants printed."""
    DEBUG = "debug"
    """What was written through `job.log`."""


Tail = Annotated[
    int | None,
    Query(ge=0, le=MAX_TAIL_LINES, description="Begin with the last so many lines."),
]
Since = Annotated[
    str | None,
    Query(
        pattern=POSITION_PATTERN,
        description="Begin at this position, `attempt:byte-offset`; goes before `tail`.",
    ),
]
Attempt = Annotated[int | None, Query(ge=1, le=999_999, description="Only this attempt's log.")]
Kind = Annotated[LogKind, Query(description="Which log.")]
LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        pattern=POSITION_PATTERN,
        description="Go on after this event: nothing is repeated and nothing skipped.",
    ),
]

_STREAM_DESCRIPTION = (
    "`log` events (data: attempt, text; id: the position after it), `job` events whenever the job"
    " changed, and one `end` event when it has ended and all was sent. Comments keep it alive."
)


class LogRoutes:
    """The routes under `/v1/jobs/{job_id}/logs`.

    Args:
        access: Finds jobs and their logs.
        streams: Makes live streams.
        limits: How far back `tail` looks.
        places: Bound the streams of one caller.
    """

    def __init__(
        self, access: JobAccess, streams: LogStreams, limits: Limits, places: StreamPlaces
    ) -> None:
        self._access = access
        self._streams = streams
        self._limits = limits
        self._places = places

    def router(self) -> APIRouter:
        router = APIRouter(tags=["logs"])
        answers = problem_answers(404, 409, 422, 503)
        router.add_api_route(
            "/v1/jobs/{job_id}/logs",
            self.text,
            response_class=Response,
            responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **answers},
        )
        router.add_api_route(
            "/v1/jobs/{job_id}/logs/stream",
            self.stream,
            response_class=EventStream,
            response_description=_STREAM_DESCRIPTION,
            responses={**answers, **problem_answers(429)},
        )
        return router

    async def text(
        self,
        caller: Caller,
        job_id: JobReference,
        tail: Tail = None,
        since: Since = None,
        attempt: Attempt = None,
        kind: Kind = LogKind.OUTPUT,
    ) -> Response:
        """The log as it is now, of one attempt or of all in their order, byte for byte.

        The header `Headway-Log-Position` of the answer says where it ends, to go on from there.
        """
        row = await self._access.find(job_id, caller)
        logs = self._access.logs(row, debug=kind is LogKind.DEBUG)
        first, last = _attempts(row, attempt)
        start = self._start(logs, first, last, since, tail)
        end = LogPosition(last, logs.size_bytes(last))
        return StreamingResponse(
            logs.pieces(start, end),
            media_type="text/plain; charset=utf-8",
            headers={POSITION_HEADER: str(end)},
        )

    async def stream(
        self,
        caller: Caller,
        job_id: JobReference,
        tail: Tail = None,
        since: Since = None,
        last_event_id: LastEventId = None,
    ) -> Response:
        """The log and the job's changes as they happen, until it has ended."""
        self._places.check(caller)
        row = await self._access.find(job_id, caller)
        logs = self._access.logs(row)
        first, last = _attempts(row, None)
        start = self._start(logs, first, last, last_event_id or since, tail)
        return EventStream(
            self._streams.follow(row.id, logs, start, self._places.held(caller)),
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )

    def _start(
        self, logs: JobLogs, first: int, last: int, position: str | None, tail: int | None
    ) -> LogPosition:
        if position is not None:
            return max(LogPosition.parse(position), LogPosition(first, 0))
        if tail is not None:
            return logs.tail(tail, first, last, self._limits.tail_bytes)
        return LogPosition(first, 0)


def _attempts(row: JobRow, only: int | None) -> tuple[int, int]:
    """The first and the last attempt to show; a job that never ran shows its first to come."""
    if only is not None:
        return only, only
    return 1, max(1, row.attempt)
