"""Watching a job from a terminal: its output, its progress, and leaving it without ending it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

import click

from headway.cli.exit_codes import ExitCode
from headway.cli.interrupts import deferred_interrupt
from headway.cli.output import numbers_of, status_of
from headway.core.errors import InternalError

if TYPE_CHECKING:
    from headway.client import Client, Job


class JobWatch:
    """Shows one job until it has ended.

    Args:
        client: Speaks to the server.
        job_id: The whole id.
        log_to: Where the job's own output goes.
    """

    def __init__(self, client: Client, job_id: str, log_to: TextIO) -> None:
        self._client = client
        self._job_id = job_id
        self._log_to = log_to
        self._status = ""
        self._position: str | None = None

    def until_ended(self, *, tail: int | None = None, since: str | None = None) -> Job:
        """Show output and progress; the job once it has ended.

        Ctrl-C leaves the job running, says so, and says how to come back (trap 25).
        """
        self._position = since
        try:
            return self._show(tail, since)
        except KeyboardInterrupt:
            click.echo(self._farewell(), err=True)
            raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None

    def _show(self, tail: int | None, since: str | None) -> Job:
        from headway.client import LogChunk

        job: Job | None = None
        for said in self._client.follow(self._job_id, tail=tail, since=since):
            if isinstance(said, LogChunk):
                # Ctrl-C in between would show a line again to who comes back, or never.
                with deferred_interrupt():
                    self._log_to.write(said.text)
                    self._log_to.flush()
                    self._position = said.position
            else:
                job = said
                self._show_status(said)
        if job is None:
            raise InternalError("the server ended the stream without saying how the job ended")
        return job

    def _show_status(self, job: Job) -> None:
        status = f"{status_of(job)} {'' if job.is_ended else numbers_of(job)}".rstrip()
        if status != self._status and sys.stderr.isatty():
            click.echo(click.style(f"[{job.id}] {status}", dim=True), err=True)
        self._status = status

    def _farewell(self) -> str:
        resume = "" if self._position is None else f" --since {self._position}"
        return (
            f"\nLeft job {self._job_id}; it goes on without you."
            f"\n  come back:  headway jobs logs {self._job_id} --follow{resume}"
            f"\n  stop it:    headway jobs cancel {self._job_id}"
        )
