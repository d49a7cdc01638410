"""What the list and the page of a job have in common."""

from __future__ import annotations

from datetime import datetime

from headway.client.models import Job
from headway.core.states import JobState, Outcome
from headway.dashboard import words
from headway.report.html.markup import Child, Markup, fragment, tag

_TONES = {
    JobState.PENDING: "waiting",
    JobState.RUNNING: "running",
    JobState.SUCCEEDED: "good",
    JobState.FAILED: "bad",
    JobState.CANCELLED: "ended",
}
BENCH = "bench"
"""The operation that runs load tests; a server may do without."""
TARGET_PREFIX = "target "
"""How `operations.target` begins the key that the runs of one target share."""
NAME_LABEL = "name"
"""A job with this label goes by it."""


def state_chip(job: Job) -> Markup:
    """The job's state as a word; how it ended, where that says more."""
    word = job.state.value.lower()
    if job.state is JobState.PENDING and job.wait_reason is not None:
        word = job.wait_reason.value
    elif job.state is JobState.FAILED and job.outcome not in (None, Outcome.FAILED):
        word = str(job.outcome).replace("_", " ")
    elif job.state is JobState.RUNNING and job.cancel_requested_at is not None:
        word = "stopping"
    return tag("span", word, class_=f"state {_TONES[job.state]}")


def job_title(job: Job) -> str:
    """What a person calls the job."""
    return job.labels.get(NAME_LABEL) or target_of(job) or job.operation


def target_of(job: Job) -> str | None:
    """What the job measures; None: it is no run."""
    key = job.concurrency_key or ""
    is_run = job.operation == BENCH and key.startswith(TARGET_PREFIX)
    return key.removeprefix(TARGET_PREFIX) if is_run else None


def label_chips(job: Job) -> Markup | None:
    """The labels; each leads to the jobs that have it."""
    chips = [
        tag("span", name, tag("b", value), class_="label-chip")
        for name, value in job.labels.items()
        if name != NAME_LABEL
    ]
    return tag("span", chips, class_="labels") if chips else None


def progress_bar(job: Job) -> Markup | None:
    """How far a running job is, and what it says of itself."""
    if job.state is not JobState.RUNNING or job.progress is None:
        return None
    fraction, message = job.progress.fraction, job.progress.message
    bar = None
    if fraction is not None:
        share = min(1.0, max(0.0, fraction))
        bar = fragment(
            tag("progress", value=f"{share:.4f}", max="1", aria_label="progress"),
            tag("span", f"{share:.0%}", class_="share"),
        )
    return tag("div", bar, tag("span", message, class_="said") if message else None, class_="how")


def job_sentence(job: Job) -> Child:
    """What the job does now, or why it does not."""
    if job.state is JobState.PENDING:
        return _wait_sentence(job)
    if job.state is JobState.RUNNING:
        return progress_bar(job)
    if job.error is not None and job.state is JobState.FAILED:
        first = job.error.message.strip().split("\n", 1)[0]
        return tag("span", f"{job.error.type}: {first}" if first else job.error.type, class_="why")
    return None


def _wait_sentence(job: Job) -> Child:
    if job.concurrency_key is not None and job.wait_reason == "locked":
        return f"waits for {job.concurrency_key}"
    if job.run_at is not None:
        return fragment("until ", words.moment(job.run_at))
    return job.wait_detail


def run_time(job: Job, now: datetime) -> Child:
    """How long it ran; of a running job, counted on by the page's script."""
    seconds = words.run_time_s(job, now)
    if seconds is None:
        return "–"
    text = words.duration(seconds)
    if job.state is JobState.RUNNING and job.started_at is not None:
        since = job.started_at.isoformat(timespec="milliseconds")
        return tag("span", text, data_since=since)
    return text
