"""The routes of the form for a new run."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response

from headway.api.extension import ExtensionParts
from headway.api.identity import Caller, Identity
from headway.api.problems import Refusal
from headway.client.models import JobRequest
from headway.dashboard.job_parts import BENCH
from headway.dashboard.new_run import Draft, SpecOf, draft_of, form_values, new_run_page
from headway.dashboard.responses import check_same_origin, html_response, see_other
from headway.load.spec import RunSpec
from headway.store.values import JobRow

MAX_FIELDS = 100


class RunRoutes:
    """`/runs/new`.

    Args:
        parts: The API's own parts.
        spec_of: The parser of `headway bench`.
    """

    def __init__(self, parts: ExtensionParts, spec_of: SpecOf) -> None:
        self._access = parts.access
        self._submissions = parts.submissions
        self._spec_of = spec_of

    def router(self) -> APIRouter:
        router = APIRouter(include_in_schema=False)
        router.add_api_route("/runs/new", self.form)
        router.add_api_route("/runs/new", self.submit, methods=["POST"])
        return router

    async def form(self, request: Request, caller: Caller) -> Response:
        """The form, filled in as the address says."""
        values = form_values(parse_qs(request.url.query, max_num_fields=MAX_FIELDS))
        return html_response(new_run_page(self._draft(request, values)))

    async def submit(self, request: Request, caller: Caller) -> Response:
        """Start the run, or say what is wrong with it."""
        check_same_origin(request)
        fields = _form(await request.body())
        draft = self._draft(request, form_values(fields))
        if draft.spec is None or fields.get("do") == ["check"]:
            return html_response(new_run_page(draft), 200 if draft.spec else 422)
        try:
            row = await self._start(draft.spec, caller)
        except Refusal as refusal:
            return html_response(new_run_page(draft, _sentence(refusal)), refusal.status)
        return see_other(f"/jobs/{row.id}")

    async def _start(self, spec: RunSpec, caller: Identity) -> JobRow:
        asked = JobRequest(operation=BENCH, input=spec.model_dump(mode="json"), labels=spec.labels)
        job = self._submissions.new_job(self._submissions.asked_in_batch(asked, 0), caller)
        [row] = await self._access.submit([job])
        return row

    def _draft(self, request: Request, values: Mapping[str, str]) -> Draft:
        server_url = f"{request.url.scheme}://{request.url.netloc}"
        return draft_of(values, server_url, self._spec_of)


def _form(body: bytes) -> dict[str, list[str]]:
    try:
        return parse_qs(body.decode(), max_num_fields=MAX_FIELDS, keep_blank_values=True)
    except ValueError:
        raise Refusal(422, "the form cannot be read") from None


def _sentence(refusal: Refusal) -> str:
    return "; ".join(error.message for error in refusal.errors) or refusal.detail
