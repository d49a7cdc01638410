"""The stream of job changes, for whoever shows a list of jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from headway.access.identity import Identity
from headway.api.identity import Caller
from headway.api.job_feed import JobFeed
from headway.api.limits import Limits
from headway.api.live import wait_for_event
from headway.api.log_routes import EventStream
from headway.api.log_stream import HEARTBEAT
from headway.api.stream_places import StreamPlaces
from headway.api.views import job_view
from headway.core.clock import Clock, s_from_ns

_POSITION = r"^[0-9a-f]{1,16}:[0-9]{1,18}$"
Since = Annotated[
    str | None, Query(pattern=_POSITION, description="Where an earlier stream has ended.")
]
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", max_length=64)]


class JobStreamRoutes:
    """`GET /v1/jobs/stream`: `job` events (data: the job) whenever one changed.

    A `reset` event says that some changes are not known any more (a restart, a reader that was
    too slow): read the list anew, and go on. It is also the first event of a stream that was
    given no position. Every event's id is the position after it.

    Args:
        feed: Has the changes.
        clock: Paces heartbeats.
        limits: Heartbeat.
        places: Bound the streams of one caller.
    """

    def __init__(self, feed: JobFeed, clock: Clock, limits: Limits, places: StreamPlaces) -> None:
        self._feed = feed
        self._clock = clock
        self._limits = limits
        self._places = places

    def router(self) -> APIRouter:
        router = APIRouter(tags=["jobs"])
        # Not in the OpenAPI document, which cannot describe an answer that never ends.
        router.add_api_route("/v1/jobs/stream", self.stream, include_in_schema=False)
        return router

    async def stream(
        self, caller: Caller, since: Since = None, last_event_id: LastEventId = None
    ) -> Response:
        self._places.check(caller)
        return EventStream(
            self._events(caller, last_event_id or since or ""),
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )

    async def _events(self, caller: Identity, position: str) -> AsyncIterator[bytes]:
        async with self._following(caller):
            spoke_ns = self._clock.monotonic_ns()
            while not self._feed.stopping:
                news = self._feed.next_change
                changes = self._feed.since(position)
                if changes is None:
                    position = self._feed.position
                    yield _event("reset", "{}", position)
                for change in changes or ():
                    position = f"{position.partition(':')[0]}:{change.number}"
                    if change.row.workspace == caller.workspace:
                        yield _event("job", job_view(change.row).model_dump_json(), position)
                if changes is None or changes:
                    spoke_ns = self._clock.monotonic_ns()
                    continue
                await wait_for_event(news, self._limits.heartbeat_s)
                if s_from_ns(self._clock.monotonic_ns() - spoke_ns) >= self._limits.heartbeat_s:
                    yield HEARTBEAT
                    spoke_ns = self._clock.monotonic_ns()

    @asynccontextmanager
    async def _following(self, caller: Identity) -> AsyncIterator[None]:
        with self._places.held(caller):
            async with self._feed.follow():
                yield


def _event(event: str, data: str, position: str) -> bytes:
    return f"event: {event}\nid: {position}\ndata: {data}\n\n".encode()
