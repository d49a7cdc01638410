"""The routes of the pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import anyio
from fastapi import APIRouter, Query, Request, Response
from pydantic import StringConstraints

from headway.access.identity import Identity
from headway.api.artifact_routes import ArtifactRoutes
from headway.api.estimate import estimated_start
from headway.api.extension import ExtensionParts
from headway.api.identity import Caller
from headway.api.job_routes import JobReference
from headway.api.problems import Refusal
from headway.api.views import event_view, job_view, why_view
from headway.client.models import Why
from headway.core.states import JobState
from headway.dashboard.assets import load_assets
from headway.dashboard.job_page import JobDetails, job_page
from headway.dashboard.job_parts import BENCH
from headway.dashboard.jobs_page import Filter, find_jobs, jobs_page
from headway.dashboard.layout import empty, heading, page
from headway.dashboard.log_tail import log_tail
from headway.dashboard.reader import Reader, reader_of
from headway.dashboard.responses import html_response, see_other
from headway.dashboard.run_panel import read_report
from headway.report.html.markup import tag
from headway.report.model import Report
from headway.store import waits
from headway.store.jobs import JobRow

MAX_RESULT_CHARACTERS = 20_000

TextParameter = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]


class DashboardRoutes:
    """`/jobs`, `/jobs/ID` and what they load.

    Args:
        parts: The API's own parts.
        with_runs: Whether the server offers load tests.
    """

    def __init__(self, parts: ExtensionParts, *, with_runs: bool) -> None:
        self._access = parts.access
        self._artifacts = ArtifactRoutes(parts.access)
        self._registry = parts.registry
        self._feed = parts.feed
        self._clock = parts.clock
        self._with_runs = with_runs
        self._assets = load_assets()

    def router(self) -> APIRouter:
        router = APIRouter(include_in_schema=False)
        router.add_api_route("/", self.home)
        router.add_api_route("/jobs", self.jobs)
        router.add_api_route("/jobs/{job_id}", self.job)
        router.add_api_route("/jobs/{job_id}/cancel", self.cancel, methods=["POST"])
        router.add_api_route("/jobs/{job_id}/retry", self.retry, methods=["POST"])
        router.add_api_route("/assets/{name}", self.asset)
        return router

    async def home(self) -> Response:
        return see_other("/jobs")

    async def jobs(
        self,
        request: Request,
        caller: Caller,
        state: Annotated[str, Query(max_length=20)] = "",
        operation: TextParameter = "",
        q: TextParameter = "",
        before: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    ) -> Response:
        wanted = Filter(_state(state), operation, q.strip(), before)
        # The position first: what changes while the list is read is then told by the stream.
        position = self._feed.position
        found = await find_jobs(self._access.store, caller.workspace, wanted)
        operations = sorted(each.name for each in self._registry)
        now = self._clock.now()
        return html_response(
            jobs_page(wanted, found, operations, position, now, self._reader(request, caller))
        )

    async def job(self, request: Request, caller: Caller, job_id: JobReference) -> Response:
        try:
            row = await self._access.find(job_id, caller)
        except Refusal as refusal:
            return self._refused(refusal, self._reader(request, caller))
        if row.id != job_id:
            return see_other(f"/jobs/{row.id}")
        details = await self._details(row, caller)
        return html_response(job_page(details, self._reader(request, caller)))

    async def cancel(self, caller: Caller, job_id: JobReference) -> Response:
        row = await self._access.cancel(await self._access.find(job_id, caller), caller.user)
        return see_other(f"/jobs/{row.id}")

    async def retry(self, caller: Caller, job_id: JobReference) -> Response:
        row = await self._access.find(job_id, caller)
        again = await self._access.retry(row, caller, None)
        return see_other(f"/jobs/{again.id}")

    async def asset(self, request: Request, name: str) -> Response:
        asset = self._assets.get(name)
        if asset is None:
            raise Refusal(404, f"there is no file {name!r}")
        headers = {"etag": asset.etag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == asset.etag:
            return Response(status_code=304, headers=headers)
        return Response(asset.content, media_type=asset.media_type, headers=headers)

    async def _details(self, row: JobRow, caller: Identity) -> JobDetails:
        store = self._access.store
        payload, why = await store.payload(row.id), await store.why(row.id)
        files = await self._artifacts.list_artifacts(caller, row.id)
        return JobDetails(
            job=job_view(row),
            why=None if why is None else await self._why(row, why),
            attempts=await store.attempts(row.id),
            events=[event_view(event) for event in await store.events(row.id)],
            artifacts=files.artifacts,
            input_json="null" if payload is None else payload.input_json,
            result_json=await self._result(row),
            log_tail=await log_tail(self._access.logs(row), row.attempt),
            now=self._clock.now(),
            is_run=row.operation == BENCH,
            report=await self._report(row),
        )

    async def _why(self, row: JobRow, why: waits.Why) -> Why:
        estimate = await estimated_start(self._access.store, why, self._clock.now())
        return why_view(row.id, why, estimate)

    async def _report(self, row: JobRow) -> Report | None:
        if row.operation != BENCH or not row.state.is_terminal:
            return None
        directory = self._access.state_dir.job_artifacts(row.id) / str(row.attempt)
        return await anyio.to_thread.run_sync(read_report, directory)

    async def _result(self, row: JobRow) -> str | None:
        stored = await self._access.store.result(row.id)
        if stored is None:
            return None
        if stored.json is not None:
            return stored.json
        path = self._access.state_dir.root / str(stored.file)
        return await anyio.to_thread.run_sync(_start_of, path)

    def _reader(self, request: Request, caller: Identity) -> Reader:
        return reader_of(request, caller, with_runs=self._with_runs)

    def _refused(self, refusal: Refusal, reader: Reader) -> Response:
        document = page(
            "Not found",
            "/jobs",
            heading("Not found"),
            empty(refusal.detail + ".", tag("a", "Show all jobs", href="/jobs")),
            reader=reader,
        )
        return html_response(document, refusal.status)


def _start_of(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(MAX_RESULT_CHARACTERS + 1)


def _state(text: str) -> JobState | None:
    return JobState(text) if text in JobState.__members__ else None
