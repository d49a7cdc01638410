"""What the page of a run's job shows besides: live numbers while it runs, then the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from headway.client.models import Job
from headway.core.states import JobState
from headway.dashboard.layout import region
from headway.report.html.markup import Markup, fragment, tag
from headway.report.html.numbers import ms, plain
from headway.report.html.page import report_body
from headway.report.model import Report

_CHARTS: list[dict[str, Any]] = [
    {
        "title": "Rate", "unit": "requests/s",
        "lines": [
            {"label": "asked", "key": "asked_rate_per_s", "tone": 6, "dashed": True},
            {"label": "sent", "key": "sent_rate_per_s", "tone": 1},
            {"label": "done", "key": "done_rate_per_s", "tone": 3},
        ],
    },
    {
        "title": "In flight", "unit": "requests",
        "lines": [{"label": "in flight", "key": "in_flight", "tone": 4}],
    },
    {
        "title": "TTFT", "unit": "ms", "factor": 1000,
        "lines": [
            {"label": "p50", "key": "ttft_p50_s", "tone": 1},
            {"label": "p95", "key": "ttft_p95_s", "tone": 2},
        ],
    },
    {
        "title": "Latency", "unit": "ms", "factor": 1000,
        "lines": [
            {"label": "p50", "key": "latency_p50_s", "tone": 1},
            {"label": "p95", "key": "latency_p95_s", "tone": 2},
        ],
    },
    {
        "title": "Lateness", "unit": "ms", "factor": 1000,
        "lines": [
            {"label": "p50", "key": "lateness_p50_s", "tone": 1},
            {"label": "p99", "key": "lateness_p99_s", "tone": 2},
        ],
    },
    {
        "title": "Requests of the stage", "unit": "so far",
        "lines": [
            {"label": "completed", "key": "completed", "tone": 3},
            {"label": "errored", "key": "errored", "tone": 5},
            {"label": "cancelled", "key": "cancelled", "tone": 6},
        ],
    },
]  # fmt: skip


def live_charts(job: Job, *, is_run: bool) -> Markup:
    """Where the page's script draws; nothing is seen of it before there are numbers."""
    return tag(
        "div",
        id="live-charts",
        class_="charts",
        hidden=True,
        data_charts=json.dumps(_CHARTS if is_run else []),
        data_history=f"/v1/jobs/{job.id}/progress",
    )


def live_figures(job: Job) -> Markup:
    """The numbers of the moment; readable without a script."""
    numbers = job.progress.numbers if job.progress is not None else {}
    if job.state is not JobState.RUNNING or "stage" not in numbers:
        return region("figures", hidden="hidden", kind="div")
    stage = f"{numbers['stage'] + 1:.0f} of {numbers.get('stages', 1):.0f}"
    figures = [
        ("Stage", stage, ""),
        ("Sent", plain(numbers.get("sent_rate_per_s")), "/s"),
        ("Done", plain(numbers.get("done_rate_per_s")), "/s"),
        ("In flight", f"{numbers.get('in_flight', 0):,.0f}", ""),
        ("TTFT p50", ms(numbers.get("ttft_p50_s")), "ms"),
        ("Latency p50", ms(numbers.get("latency_p50_s")), "ms"),
        ("Errors", f"{numbers.get('errored', 0):,.0f}", ""),
    ]
    cells = [
        tag("div", tag("dt", name), tag("dd", value, tag("small", f" {unit}") if unit else None))
        for name, value, unit in figures
    ]
    return region("figures", tag("dl", cells, class_="figures"), kind="div")


def report_region(job: Job, report: Report | None) -> Markup:
    """The report of a run that has ended, with what may be done with it."""
    if report is None:
        return region("report", hidden="hidden")
    links = fragment(
        tag("a", "Download the report", class_="button small", download=True,
            href=f"/v1/jobs/{job.id}/artifacts/report.html"),
        tag("a", "JSON", class_="button small", download=True,
            href=f"/v1/jobs/{job.id}/artifacts/report.json"),
        tag("a", "CSV", class_="button small", download=True,
            href=f"/v1/jobs/{job.id}/artifacts/report.csv"),
        tag("a", "Compare", class_="button small", href=f"/compare?a={job.id}"),
    )  # fmt: skip
    return region(
        "report",
        tag("p", links, class_="report-links"),
        report_body(report),
        class_="report",
    )


def read_report(directory: Path) -> Report | None:
    """The report among an attempt's artifacts; None: there is none, or it cannot be read."""
    try:
        return msgspec.json.decode((directory / "report.json").read_bytes(), type=Report)
    except (OSError, msgspec.DecodeError):
        return None
