"""The list of jobs: filter, search, pages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from headway.api.views import job_view
from headway.client.models import Job
from headway.core.states import JobState
from headway.dashboard.job_parts import (
    job_sentence,
    job_title,
    label_chips,
    run_time,
    state_chip,
)
from headway.dashboard.layout import Live, empty, heading, page, region
from headway.dashboard.reader import Reader
from headway.dashboard.words import moment
from headway.report.html.markup import Child, Markup, tag
from headway.store.jobs import JobQuery
from headway.store.store import Store

PAGE_ROWS = 50
SEARCHED_ROWS = 2_000
"""A search by text reads so many of the newest jobs; labels and ids are found by index."""


@dataclass(frozen=True)
class Filter:
    """What the list shows.

    Attributes:
        text: `name=value` finds a label; anything else, jobs that have it in id, operation,
            labels, key or error.
        before: The cursor of the page before; None for the first page.
    """

    state: JobState | None = None
    operation: str = ""
    text: str = ""
    before: int | None = None

    @property
    def is_plain(self) -> bool:
        return not (self.state or self.operation or self.text)

    def address(self, **changes: object) -> str:
        """The list with this filter, some of it changed."""
        asked = {
            "state": self.state.value if self.state else "",
            "operation": self.operation,
            "q": self.text,
            **changes,
        }
        query = urlencode({name: value for name, value in asked.items() if value})
        return f"/jobs?{query}" if query else "/jobs"


@dataclass(frozen=True)
class Found:
    """The rows of one page."""

    jobs: list[Job]
    cursor: int | None


async def find_jobs(store: Store, workspace: str, wanted: Filter) -> Found:
    """One page of the jobs that the filter lets through, newest first."""
    label = _label(wanted.text)
    query = JobQuery(
        states=(wanted.state,) if wanted.state else (),
        operation=wanted.operation or None,
        workspace=workspace,
        labels=label,
        before=wanted.before,
        limit=PAGE_ROWS,
    )
    if label or not wanted.text:
        rows = await store.list_jobs(query)
        return Found([job_view(row) for row in rows.jobs], rows.cursor)
    return await _search(store, query, wanted.text)


async def _search(store: Store, query: JobQuery, text: str) -> Found:
    found: list[Job] = []
    before = query.before
    for _ in range(SEARCHED_ROWS // PAGE_ROWS):
        asked = JobQuery(
            states=query.states,
            operation=query.operation,
            workspace=query.workspace,
            before=before,
            limit=PAGE_ROWS,
        )
        rows = await store.list_jobs(asked)
        for row in rows.jobs:
            job = job_view(row)
            if text.lower() in _searchable(job):
                found.append(job)
                if len(found) == PAGE_ROWS:
                    return Found(found, row.sequence)
        before = rows.cursor
        if before is None:
            break
    return Found(found, before)


def _label(text: str) -> dict[str, str]:
    name, equals, value = text.partition("=")
    return {name.strip(): value.strip()} if equals and name.strip() else {}


def _searchable(job: Job) -> str:
    parts = [job.id, job.operation, job.created_by, job.concurrency_key or ""]
    parts += [f"{name}={value}" for name, value in job.labels.items()]
    if job.error is not None:
        parts += [job.error.type, job.error.message]
    return "\n".join(parts).lower()


def jobs_page(
    wanted: Filter,
    found: Found,
    operations: list[str],
    position: str,
    now: datetime,
    reader: Reader,
) -> str:
    """The document."""
    new_run = tag("a", "New run", href="/runs/new", class_="button primary")
    return page(
        "Jobs",
        "/jobs",
        heading("Jobs", new_run if reader.with_runs and reader.may_run else None),
        _filter_form(wanted, operations),
        region("jobs", _table(wanted, found, now), _pages(wanted, found), aria_label="Jobs"),
        live=Live("/v1/jobs/stream", position),
        reader=reader,
    )


def _filter_form(wanted: Filter, operations: list[str]) -> Markup:
    states = [(None, "All"), *((state, state.value.capitalize()) for state in JobState)]
    tabs = [
        tag(
            "a",
            name,
            href=wanted.address(state=state.value if state else ""),
            aria_current="true" if state == wanted.state else None,
        )
        for state, name in states
    ]
    choices = [tag("option", "All operations", value="")]
    choices += [
        tag("option", name, value=name, selected=name == wanted.operation) for name in operations
    ]
    return tag(
        "form",
        tag("div", tabs, class_="tabs", role="group", aria_label="State"),
        tag(
            "input", type="hidden", name="state", value=wanted.state.value if wanted.state else ""
        ),
        tag("select", choices, name="operation", aria_label="Operation"),
        tag(
            "input", type="search", name="q", value=wanted.text, autocomplete="off",
            placeholder="Search, or label=value", aria_label="Search", maxlength=200,
        ),
        tag("button", "Search", class_="button"),
        action="/jobs",
        method="get",
        class_="filter",
        role="search",
    )  # fmt: skip


def _table(wanted: Filter, found: Found, now: datetime) -> Markup:
    if not found.jobs:
        if wanted.is_plain:
            return empty("No jobs yet.")
        return empty("No job fits this filter.", tag("a", "Show all jobs", href="/jobs"))
    headers = ("State", "Job", "Now", "Attempt", "Submitted", "Ran")
    head = tag("tr", [tag("th", name, scope="col") for name in headers])
    rows = [_row(job, now) for job in found.jobs]
    return tag("table", tag("thead", head), tag("tbody", rows), class_="jobs")


def _row(job: Job, now: datetime) -> Markup:
    name = tag("a", job_title(job), href=f"/jobs/{job.id}", class_="job-link")
    below = [tag("span", job.operation) if job_title(job) != job.operation else None]
    below.append(tag("code", job.id))
    cells: list[tuple[str, Child]] = [
        ("job-state", state_chip(job)),
        ("job-name", [name, tag("small", below), label_chips(job)]),
        ("job-now", job_sentence(job)),
        ("job-attempt", str(job.attempt) if job.attempt else "–"),
        ("job-when", moment(job.created_at)),
        ("job-ran", run_time(job, now)),
    ]
    return tag("tr", [tag("td", cell, class_=kind) for kind, cell in cells], id=f"row-{job.id}")


def _pages(wanted: Filter, found: Found) -> Markup | None:
    newest = tag("a", "Newest", href=wanted.address()) if wanted.before is not None else None
    older = None
    if found.cursor is not None:
        older = tag("a", "Older jobs", href=wanted.address(before=found.cursor), rel="next")
    return tag("p", newest, older, class_="pages") if newest or older else None
