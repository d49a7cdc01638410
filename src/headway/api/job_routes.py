"""Routes that read, cancel and retry jobs."""

from __future__ import annotations

from typing import Annotated, Any

import anyio
import msgspec
from fastapi import APIRouter, Path, Query, Request, Response

from headway.api.estimate import estimated_start
from headway.api.idempotency import IdempotencyKey
from headway.api.identity import Caller
from headway.api.job_access import JobAccess, result_response
from headway.api.job_list import ListParameters
from headway.api.problems import Refusal, problem_answers
from headway.api.progress_file import read_progress
from headway.api.readiness import Readiness
from headway.api.trace import TraceDocument, trace_of
from headway.api.views import event_view, job_view, why_view
from headway.api.wait_parameter import WaitParameter, unless_disconnected, wait_seconds
from headway.client.models import (
    EventPage,
    Job,
    JobFieldsPage,
    JobPage,
    JobResult,
    ProgressHistory,
    Why,
)
from headway.core.clock import Clock
from headway.core.states import JobState
from headway.store.jobs import JobRow

# More than an id has, so that a mistyped one is answered "no such job" and not "wrong field".
JobReference = Annotated[
    str,
    Path(
        min_length=1,
        max_length=64,
        pattern=r"^[0-9A-Za-z]+$",
        description="A job's id, or any beginning of it that no other job's id shares.",
    ),
]
_JSON = "application/json"


class JobRoutes:
    """The routes under `/v1/jobs`, logs and artifacts apart.

    Args:
        access: Reads and changes jobs.
        clock: Says how long phases that still last have taken.
        readiness: Says what keeps every waiting job from being started.
    """

    def __init__(self, access: JobAccess, clock: Clock, readiness: Readiness) -> None:
        self._access = access
        self._clock = clock
        self._readiness = readiness

    def router(self) -> APIRouter:
        router = APIRouter(tags=["jobs"])
        one = problem_answers(404, 409, 422, 503)
        self._add(router, "", self.list_jobs, JobPage | JobFieldsPage, problem_answers(422, 503))
        self._add(router, "/{job_id}", self.get_job, Job, one)
        self._add(router, "/{job_id}/events", self.events, EventPage, one)
        self._add(router, "/{job_id}/why", self.why, Why, one)
        self._add(router, "/{job_id}/progress", self.progress, ProgressHistory, one)
        self._add(router, "/{job_id}/trace", self.trace, TraceDocument, one)
        result_answers = {
            202: {"model": JobResult, "description": "The job has not ended."},
            **one,
        }
        self._add(router, "/{job_id}/result", self.result, JobResult, result_answers)
        self._add(router, "/{job_id}/cancel", self.cancel, Job, one, methods=["POST"])
        self._add(
            router, "/{job_id}/retry", self.retry, Job, one, methods=["POST"], status_code=202
        )
        return router

    @staticmethod
    def _add(
        router: APIRouter, path: str, endpoint: Any, model: Any, answers: Any, **options: Any
    ) -> None:
        router.add_api_route(
            f"/v1/jobs{path}", endpoint, response_model=model, responses=answers, **options
        )

    async def list_jobs(
        self, caller: Caller, parameters: Annotated[ListParameters, Query()]
    ) -> Response:
        """Jobs, newest first, a page at a time."""
        page = await self._access.store.list_jobs(parameters.query(caller))
        views = [job_view(row) for row in page.jobs]
        cursor = None if page.cursor is None else str(page.cursor)
        chosen = parameters.chosen_fields()
        if chosen is None:
            content = JobPage(jobs=views, next_cursor=cursor).model_dump_json()
        else:
            rows = [view.model_dump(mode="json", include=chosen) for view in views]
            content = JobFieldsPage(jobs=rows, next_cursor=cursor).model_dump_json()
        return Response(content, media_type=_JSON)

    async def get_job(
        self, request: Request, caller: Caller, job_id: JobReference, wait: WaitParameter = None
    ) -> Response:
        """The job now; with `wait`, once it has ended or the time is over."""
        row = await self._waited(request, await self._access.find(job_id, caller), wait)
        return Response(job_view(row).model_dump_json(), media_type=_JSON)

    async def result(
        self, request: Request, caller: Caller, job_id: JobReference, wait: WaitParameter = None
    ) -> Response:
        """What the job returned: 200 when it has ended, however it ended, else 202."""
        row = await self._waited(request, await self._access.find(job_id, caller), wait)
        if row.state.is_terminal:
            return await result_response(self._access, row)
        content = JobResult(job=job_view(row)).model_dump_json()
        return Response(content, status_code=202, media_type=_JSON)

    async def events(
        self,
        caller: Caller,
        job_id: JobReference,
        after: Annotated[int, Query(ge=0, le=2**53)] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
    ) -> EventPage:
        """The job's history, oldest first."""
        row = await self._access.find(job_id, caller)
        events = await self._access.store.events(row.id, after, limit)
        return EventPage(events=[event_view(event) for event in events])

    async def progress(
        self,
        caller: Caller,
        job_id: JobReference,
        attempt: Annotated[int | None, Query(ge=1, le=999_999)] = None,
    ) -> Response:
        """The numbers that an attempt (by default the last) told of its progress, over time."""
        row = await self._access.find(job_id, caller)
        path = self._access.state_dir.attempt_progress(row.id, attempt or row.attempt)
        points = await anyio.to_thread.run_sync(read_progress, path)
        content = msgspec.json.encode({"attempt": attempt or row.attempt, "points": points})
        return Response(content, media_type=_JSON)

    async def why(self, caller: Caller, job_id: JobReference) -> Why:
        """Why the job does not run now, exactly."""
        row = await self._access.find(job_id, caller)
        why = await self._access.store.why(row.id)
        if why is None:
            raise Refusal(404, f"there is no job {job_id!r}")
        estimate = await estimated_start(self._access.store, why, self._clock.now())
        view = why_view(row.id, why, estimate)
        if why.state is JobState.PENDING and (obstacle := await self._readiness.obstacle()):
            text = f"{view.text}; and no job can be started now: {obstacle}"
            return view.model_copy(update={"text": text})
        return view

    async def trace(self, caller: Caller, job_id: JobReference) -> TraceDocument:
        """The phases of the job's attempts, in the trace-event format that browsers display."""
        row = await self._access.find(job_id, caller)
        attempts = await self._access.store.attempts(row.id)
        return trace_of(row, attempts, self._clock.now())

    async def cancel(self, caller: Caller, job_id: JobReference) -> Response:
        """End the job. The intent is durable when this answers; an ended job stays as it is."""
        row = await self._access.cancel(await self._access.find(job_id, caller), caller.user)
        return Response(job_view(row).model_dump_json(), media_type=_JSON)

    async def retry(
        self, caller: Caller, job_id: JobReference, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Do an ended job's work again, as a new job with `retry_of`."""
        row = await self._access.find(job_id, caller)
        again = await self._access.retry(row, caller, idempotency_key)
        return Response(
            job_view(again).model_dump_json(),
            status_code=202,
            headers={"location": f"/v1/jobs/{again.id}"},
            media_type=_JSON,
        )

    async def _waited(self, request: Request, row: JobRow, wait: str | None) -> JobRow:
        wait_s = wait_seconds(wait)
        if wait_s <= 0 or row.state.is_terminal:
            return row
        waiting = self._access.live.until_ended(row, wait_s)
        return await unless_disconnected(request, waiting) or row
