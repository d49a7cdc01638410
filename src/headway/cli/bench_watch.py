"""Watching a benchmark's job from its place in the queue to its end."""

from __future__ import annotations

import threading
from datetime import datetime

from headway.cli.bench_screen import Screen
from headway.client import Client, Job, LogChunk, Why
from headway.core.clock import Clock
from headway.core.errors import HeadwayError, InternalError
from headway.core.states import JobState
from headway.operations.live_numbers import snapshot_of

_ASK_WHY_S = 2.0


class BenchWatch:
    """Shows one job until it has ended.

    Args:
        client: Speaks to the server.
        job_id: The whole id.
        screen: Where it is shown.
        clock: Tells how far away an estimated start is.
    """

    def __init__(self, client: Client, job_id: str, screen: Screen, clock: Clock) -> None:
        self._client = client
        self._job_id = job_id
        self._screen = screen
        self._clock = clock
        self._waits = threading.Event()
        self._over = threading.Event()
        self._unfinished = ""

    def until_ended(self) -> Job:
        """Show log, numbers and reasons; the job once it has ended."""
        # Why a job waits changes without the job changing: by the progress of whoever is before it.
        asking = threading.Thread(target=self._keep_asking_why, name="why", daemon=True)
        asking.start()
        try:
            return self._follow()
        finally:
            self._over.set()
            self._waits.set()
            asking.join()
            self._screen.close()

    def _follow(self) -> Job:
        job: Job | None = None
        for said in self._client.follow(self._job_id):
            if isinstance(said, LogChunk):
                self._show_log(said.text)
            else:
                job = said
                self._show_job(said)
        if job is None:
            raise InternalError("the server ended the stream without saying how the job ended")
        return job

    def _show_log(self, text: str) -> None:
        *lines, self._unfinished = (self._unfinished + text).split("\n")
        for line in lines:
            self._screen.line(line)

    def _show_job(self, job: Job) -> None:
        if job.state is JobState.PENDING:
            self._waits.set()
            return
        self._waits.clear()
        if job.is_ended or job.progress is None:
            return
        snapshot = snapshot_of(job.progress.message, job.progress.numbers)
        if snapshot is not None:
            self._screen.numbers(snapshot)
        elif job.progress.message:
            self._screen.status(job.progress.message)

    def _keep_asking_why(self) -> None:
        while not self._over.is_set():
            self._waits.wait()
            if self._over.is_set():
                return
            self._ask_why()
            self._over.wait(_ASK_WHY_S)

    def _ask_why(self) -> None:
        try:
            why = self._client.why(self._job_id)
        except HeadwayError:
            return  # Following bridges a restart of the server, or says that there is none.
        if self._waits.is_set() and why.state is JobState.PENDING:
            self._screen.status(reason_of(why, self._clock.now()))


def reason_of(why: Why, now: datetime) -> str:
    """Why the job waits, and when it is likely to run, in one line."""
    text = f"Waiting: {why.text}"
    if why.estimated_start is None:
        return text
    minutes = (why.estimated_start - now).total_seconds() / 60
    at = why.estimated_start.astimezone().strftime("%H:%M")
    if minutes < 1:
        return f"{text}; it starts in less than a minute, by estimate"
    return f"{text}; it starts in about {minutes:.0f} min ({at}), by estimate"
