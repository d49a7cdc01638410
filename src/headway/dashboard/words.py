"""Times, durations and sizes as people read them."""

from __future__ import annotations

from datetime import datetime

from headway.client.models import Job
from headway.report.html.markup import Markup, tag


def moment(at: datetime | None) -> Markup | None:
    """A time; the page's script adds how long ago that was, in the reader's own time zone."""
    if at is None:
        return None
    text = at.strftime("%Y-%m-%d %H:%M:%S UTC")
    return tag("time", text, datetime=at.isoformat(timespec="milliseconds"))


def duration(seconds: float) -> str:
    """`0.42 s`, `12.3 s`, `3 min 05 s`, `2 h 07 min`, `3 d 4 h`."""
    if seconds < 1:
        return f"{max(0.0, seconds):.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes:02} min"
    return f"{hours // 24} d {hours % 24} h"


def size(size_bytes: int) -> str:
    """`512 B`, `1.4 MiB`."""
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def run_time_s(job: Job, now: datetime) -> float | None:
    """How long the job has been running, or ran; None when it never did."""
    if job.started_at is None:
        return None
    return ((job.ended_at or now) - job.started_at).total_seconds()


def number(value: float) -> str:
    """A number that a job told, short."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.4g}"
