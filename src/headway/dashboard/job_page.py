"""The page of one job."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from headway.client.models import Artifact, Event, Job, JobError, Why
from headway.core.states import JobState
from headway.dashboard import words
from headway.dashboard.job_parts import (
    job_title,
    label_chips,
    progress_bar,
    run_time,
    state_chip,
)
from headway.dashboard.layout import Live, empty, heading, page, region
from headway.dashboard.reader import Reader
from headway.dashboard.run_panel import live_charts, live_figures, report_region
from headway.dashboard.words import moment
from headway.report.html.markup import Child, Markup, fragment, tag
from headway.report.html.tables import table
from headway.report.model import Report
from headway.store.jobs import AttemptRow

MAX_TEXT = 20_000
"""Characters of an input or a result that the page shows; the API has all of it."""


@dataclass(frozen=True)
class JobDetails:
    """All that the page tells.

    Attributes:
        log_tail: The end of the log as plain text, for readers without a script.
        is_run: The job is a load test.
        report: Of a run that has ended.
    """

    job: Job
    why: Why | None
    attempts: list[AttemptRow]
    events: list[Event]
    artifacts: list[Artifact]
    input_json: str
    result_json: str | None
    log_tail: str
    now: datetime
    is_run: bool = False
    report: Report | None = None


def job_page(details: JobDetails, reader: Reader) -> str:
    """The document."""
    job = details.job
    return page(
        f"{job_title(job)} {job.id}",
        "/jobs",
        _header(details, reader),
        _wait(details),
        _failure(job),
        live_figures(job) if details.is_run else None,
        None if job.state.is_terminal else live_charts(job, is_run=details.is_run),
        report_region(job, details.report) if details.is_run else None,
        _log(details),
        _attempts(details),
        _artifacts(details),
        _given(details),
        _events(details),
        live=Live(f"/v1/jobs/{job.id}/logs/stream", gap_ms=800),
        reader=reader,
    )


def _header(details: JobDetails, reader: Reader) -> Markup:
    job = details.job
    facts = [
        tag("span", job.operation),
        tag("code", job.id),
        tag("span", f"{job.lane} lane"),
        tag("span", f"by {job.created_by}"),
        tag("span", "submitted ", moment(job.created_at)),
        _ran(job, details.now),
        tag("span", f"priority {job.priority}") if job.priority else None,
        tag("span", "again: ", _job_link(job.retry_of)) if job.retry_of else None,
    ]
    return region(
        "summary",
        heading(job_title(job), state_chip(job), _actions(job) if reader.may_run else None),
        tag("p", facts, label_chips(job), class_="facts"),
        progress_bar(job),
        aria_label="Summary",
        data_state=job.state.value,
    )


def _ran(job: Job, now: datetime) -> Markup | None:
    if job.started_at is None:
        return None
    word = "running for " if job.state is JobState.RUNNING else "ran "
    return tag("span", word, run_time(job, now))


def _actions(job: Job) -> Markup:
    if job.state.is_terminal:
        return _button(job, "retry", "Run again")
    if job.cancel_requested_at is not None:
        return tag("span", "cancel asked for", class_="note")
    return _button(job, "cancel", "Cancel", danger=True)


def _button(job: Job, action: str, name: str, *, danger: bool = False) -> Markup:
    kind = "button danger" if danger else "button"
    button = tag("button", name, class_=kind, data_confirm=f"{name} this job?" if danger else None)
    return tag("form", button, method="post", action=f"/jobs/{job.id}/{action}", class_="action")


def _wait(details: JobDetails) -> Markup:
    why = details.why
    if details.job.state is not JobState.PENDING or why is None:
        return region("wait", hidden="hidden")
    holders = [fragment(" ", _job_link(holder)) for holder in why.holders]
    facts: list[tuple[str, Child]] = [
        ("Position", None if why.position is None else str(why.position)),
        ("Held by", holders or None),
        ("Waits until", moment(why.until)),
        ("Expected to start", moment(why.estimated_start)),
    ]
    shown = [fragment(tag("dt", name), tag("dd", value)) for name, value in facts if value]
    return region(
        "wait",
        tag("h2", "Why it waits"),
        tag("p", _capital(why.text) + "."),
        tag("dl", shown, class_="terms") if shown else None,
        class_="panel waiting",
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _job_link(job_id: str) -> Markup:
    return tag("a", tag("code", job_id), href=f"/jobs/{job_id}")


def _failure(job: Job) -> Markup:
    if job.error is None or job.state is JobState.SUCCEEDED:
        return region("failure", hidden="hidden")
    if job.state is JobState.FAILED:
        outcome = str(job.outcome).replace("_", " ")
        title = "How it failed" if outcome == "failed" else f"How it failed: {outcome}"
    else:
        title = "The attempt before failed"
    return region("failure", tag("h2", title), _error(job.error), class_="panel bad")


def _error(error: JobError) -> Markup:
    trace = None
    if error.traceback:
        trace = tag("details", tag("summary", "Traceback"), tag("pre", error.traceback))
    cause = None
    if error.cause is not None:
        cause = tag("div", tag("p", "because of", class_="note"), _error(error.cause))
    head = tag("p", tag("strong", error.type), ": ", error.message, class_="message")
    return fragment(head, trace, cause)


def _log(details: JobDetails) -> Markup:
    job = details.job
    tools = tag(
        "div",
        tag("input", type="search", id="log-search", placeholder="Search the log",
            aria_label="Search the log", autocomplete="off"),
        tag("output", id="log-found", for_="log-search", class_="note"),
        tag("button", "Follow", type="button", id="log-follow", class_="button small",
            aria_pressed="true"),
        tag("button", "Wrap", type="button", id="log-wrap", class_="button small",
            aria_pressed="true"),
        tag("a", "Download", href=f"/v1/jobs/{job.id}/logs", download=f"{job.id}.log",
            class_="button small"),
        class_="log-tools",
    )  # fmt: skip
    text = details.log_tail or f"Nothing was printed{'' if job.state.is_terminal else ' yet'}."
    return tag(
        "section",
        tag("h2", "Log", id="log-title"),
        tools,
        tag("div", tag("pre", text, class_="log-lines"), id="log", class_="log short", tabindex=0,
            role="log", aria_live="off", aria_labelledby="log-title"),
        class_="log-section",
    )  # fmt: skip


def _attempts(details: JobDetails) -> Markup:
    if not details.attempts:
        return region("attempts", hidden="hidden")
    headers = ("Attempt", "How it ended", "Began", "Took", "Peak memory", "CPU", "Error")
    rows = [_attempt_row(attempt) for attempt in details.attempts]
    trace = tag("a", "Timeline for a trace viewer", href=f"/v1/jobs/{details.job.id}/trace")
    return region(
        "attempts",
        tag("h2", "Attempts"),
        table("Memory and CPU are those of the whole process tree.", headers, rows),
        tag("p", trace, class_="note"),
    )


def _attempt_row(attempt: AttemptRow) -> Markup:
    usage, error = attempt.usage, attempt.error
    outcome = "given back" if attempt.outcome is None else attempt.outcome.replace("_", " ")
    memory = None if usage is None else usage.peak_rss_bytes
    cpu_s = None if usage is None else usage.cpu_s
    took_s = (attempt.ended_at - attempt.started_at).total_seconds()
    return tag(
        "tr",
        tag("th", str(attempt.attempt), scope="row"),
        tag("td", outcome),
        tag("td", moment(attempt.started_at)),
        tag("td", words.duration(took_s)),
        tag("td", "–" if memory is None else words.size(memory)),
        tag("td", "–" if cpu_s is None else words.duration(cpu_s)),
        tag("td", f"{error.type}: {error.message}" if error else "", class_="text"),
    )


def _artifacts(details: JobDetails) -> Markup:
    if not details.artifacts:
        return region("artifacts", hidden="hidden")
    rows = [
        tag(
            "tr",
            tag("th", tag("a", each.name, href=_artifact_address(details.job, each), download=True),
                scope="row"),
            tag("td", words.size(each.size_bytes)),
            tag("td", each.media_type),
            tag("td", str(each.attempt)),
        )
        for each in details.artifacts
    ]  # fmt: skip
    files = table("Kept until the job is removed.", ("File", "Size", "Type", "Attempt"), rows)
    return region("artifacts", tag("h2", "Files"), files)


def _artifact_address(job: Job, artifact: Artifact) -> str:
    return f"/v1/jobs/{job.id}/artifacts/{quote(artifact.name)}?attempt={artifact.attempt}"


def _given(details: JobDetails) -> Markup:
    parts = [_json_details("Input", details.input_json)]
    if details.result_json is not None:
        parts.append(_json_details("Result", details.result_json))
    return region("given", parts)


def _json_details(name: str, text: str) -> Markup:
    shown = _pretty(text)
    if len(shown) > MAX_TEXT:
        shown = shown[:MAX_TEXT] + "\n… the rest is to be had from the API"
    return tag(
        "details", tag("summary", tag("h2", name)), tag("pre", shown, class_="code"), class_="fold"
    )


def _pretty(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text


def _events(details: JobDetails) -> Markup:
    if not details.events:
        return region("events", tag("h2", "Events"), empty("Nothing happened yet."))
    rows = [
        tag(
            "tr",
            tag("td", moment(event.at)),
            tag("th", event.kind.replace("_", " "), scope="row"),
            tag("td", str(event.attempt) if event.attempt else "–"),
            tag("td", _detail(event), class_="text"),
        )
        for event in details.events
    ]
    headers = ("When", "What", "Attempt", "Details")
    return region("events", tag("h2", "Events"), table("Oldest first.", headers, rows))


def _detail(event: Event) -> Child:
    parts = [
        tag("span", tag("i", name.replace("_", " ")), " ", _value(value))
        for name, value in event.detail.items()
        if value not in (None, "", [], {})
    ]
    return tag("span", parts, class_="details")


def _value(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return words.number(value)
    return json.dumps(value, ensure_ascii=False)
