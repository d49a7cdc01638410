"""The routes of the pages about runs: the form, the targets, the comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Query, Request, Response

from headway.access.identity import Identity
from headway.api.extension import ExtensionParts
from headway.api.identity import Caller
from headway.api.problems import Refusal
from headway.api.views import job_view
from headway.client.models import JobRequest
from headway.dashboard.compare_page import Choice, compare_page
from headway.dashboard.comparisons import ComparisonFailed, Comparisons, Outcome
from headway.dashboard.job_parts import BENCH
from headway.dashboard.new_run import Draft, SpecOf, draft_of, form_values, new_run_page
from headway.dashboard.reader import Reader, reader_of
from headway.dashboard.responses import html_response, see_other
from headway.dashboard.runs import Runs, run_directory
from headway.dashboard.targets_page import targets_of, targets_page
from headway.load.spec import RunSpec
from headway.store.jobs import JobRow

MAX_FIELDS = 100
FILE = "report.json"
"""Runs that have it can be compared; others ended before their first stage."""
JobText = Annotated[str, Query(max_length=64, pattern=r"^[0-9A-Za-z]*$")]


class RunRoutes:
    """`/runs/new`, `/targets` and `/compare`.

    Args:
        parts: The API's own parts.
        spec_of: The parser of `headway bench`.
    """

    def __init__(self, parts: ExtensionParts, spec_of: SpecOf) -> None:
        self._access = parts.access
        self._submissions = parts.submissions
        self._premises = parts.premises
        self._spec_of = spec_of
        self._feed = parts.feed
        self._clock = parts.clock
        self._runs = Runs(parts.access)
        self._comparisons = Comparisons()

    def router(self) -> APIRouter:
        router = APIRouter(include_in_schema=False)
        router.add_api_route("/runs/new", self.form)
        router.add_api_route("/runs/new", self.submit, methods=["POST"])
        router.add_api_route("/targets", self.targets)
        router.add_api_route("/compare", self.compare)
        return router

    async def form(self, request: Request, caller: Caller) -> Response:
        """The form, filled in as the address says."""
        values = form_values(parse_qs(request.url.query, max_num_fields=MAX_FIELDS))
        return html_response(new_run_page(self._draft(request, values), _reader(request, caller)))

    async def submit(self, request: Request, caller: Caller) -> Response:
        """Start the run, or say what is wrong with it."""
        fields = _form(await request.body())
        draft = self._draft(request, form_values(fields))
        reader = _reader(request, caller)
        if draft.spec is None or fields.get("do") == ["check"]:
            return html_response(new_run_page(draft, reader), 200 if draft.spec else 422)
        try:
            row = await self._start(draft.spec, caller)
        except Refusal as refusal:
            return html_response(new_run_page(draft, reader, _sentence(refusal)), refusal.status)
        return see_other(f"/jobs/{row.id}")

    async def targets(self, request: Request, caller: Caller) -> Response:
        """Who holds each target, who waits, and its history."""
        position = self._feed.position
        runs = await self._runs.newest(caller.workspace)
        now, reader = self._clock.now(), _reader(request, caller)
        premises = self._premises
        registered = () if premises is None else premises.targets.of(caller.workspace)
        return html_response(targets_page(targets_of(runs), position, now, reader, registered))

    async def compare(
        self,
        request: Request,
        caller: Caller,
        a: JobText = "",
        b: JobText = "",
        allow_different: Annotated[str, Query(max_length=10)] = "",
    ) -> Response:
        """One run held against another."""
        choice = Choice(a, b, bool(allow_different))
        found = await self._runs.newest(caller.workspace)
        runs = [run for run in found if (run_directory(self._access, run.job) / FILE).exists()]
        outcome, problem = None, None
        if a and b:
            try:
                outcome = await self._outcome(choice, caller)
            except (ComparisonFailed, Refusal) as error:
                problem = str(error)
        return html_response(compare_page(runs, choice, outcome, problem, _reader(request, caller)))

    async def _outcome(self, choice: Choice, caller: Identity) -> Outcome:
        directories = []
        for job_id in (choice.a, choice.b):
            row = await self._access.find(job_id, caller)
            if row.operation != BENCH or not row.state.is_terminal:
                raise ComparisonFailed(f"job {row.id} is no run that has ended")
            directories.append(run_directory(self._access, job_view(row)))
        return await self._comparisons.of(*directories, allow_different=choice.allow_different)

    async def _start(self, spec: RunSpec, caller: Identity) -> JobRow:
        asked = JobRequest(operation=BENCH, input=spec.model_dump(mode="json"), labels=spec.labels)
        job = self._submissions.new_job(self._submissions.asked_in_batch(asked, 0), caller)
        [row] = await self._access.submit([job], caller)
        return row

    def _draft(self, request: Request, values: Mapping[str, str]) -> Draft:
        server_url = f"{request.url.scheme}://{request.url.netloc}"
        return draft_of(values, server_url, self._spec_of)


def _form(body: bytes) -> dict[str, list[str]]:
    try:
        return parse_qs(body.decode(), max_num_fields=MAX_FIELDS, keep_blank_values=True)
    except ValueError:
        raise Refusal(422, "the form cannot be read") from None


def _reader(request: Request, caller: Identity) -> Reader:
    return reader_of(request, caller, with_runs=True)


def _sentence(refusal: Refusal) -> str:
    return "; ".join(error.message for error in refusal.errors) or refusal.detail
