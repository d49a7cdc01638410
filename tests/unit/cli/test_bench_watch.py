"""What a terminal says of a benchmark on a server."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from headway.cli.bench_screen import NoScreen, PlainScreen, TerminalScreen, screen_on
from headway.cli.bench_watch import reason_of
from headway.client import Why
from headway.core.states import JobState

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def why(starts_in_s: float | None) -> Why:
    start = None if starts_in_s is None else NOW + timedelta(seconds=starts_in_s)
    return Why(
        job_id="j", state=JobState.PENDING, text="it is number 2 in line", estimated_start=start
    )


@pytest.mark.parametrize(
    ("starts_in_s", "estimate"),
    [
        (None, ""),
        (-5, "; it starts in less than a minute, by estimate"),
        (59, "; it starts in less than a minute, by estimate"),
        (250, "; it starts in about 4 min ("),
    ],
)
def test_the_reason_ends_with_the_estimate(starts_in_s: float | None, estimate: str) -> None:
    """N5, N12."""
    said = reason_of(why(starts_in_s), NOW)
    assert said.startswith(f"Waiting: it is number 2 in line{estimate}")
    assert ("estimate" in said) == bool(estimate)


def test_plain_output_says_a_reason_once() -> None:
    written = io.StringIO()
    screen = PlainScreen(Console(file=written))
    for text in ("Waiting: 2", "Waiting: 2", "Waiting: 1"):
        screen.status(text)
    assert written.getvalue() == "Waiting: 2\nWaiting: 1\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_what_a_job_writes_does_not_drive_the_terminal(terminal: bool) -> None:
    written = io.StringIO()
    screen = screen_on(Console(file=written, force_terminal=terminal), quiet=False)
    screen.line("before\x1b[2Jafter")
    screen.status("why\x1b]0;title\x07")
    screen.close()
    assert "\x1b[2J" not in written.getvalue()
    assert "\x1b]0;" not in written.getvalue()
    assert isinstance(screen, TerminalScreen if terminal else PlainScreen)


def test_quiet_is_quiet() -> None:
    assert isinstance(screen_on(Console(file=io.StringIO()), quiet=True), NoScreen)
