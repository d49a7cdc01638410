"""`headway jobs`: list, show, watch, cancel and retry jobs of a server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.completion import complete_job, complete_operation
from headway.cli.output import (
    connect,
    exit_with,
    numbers_of,
    print_answer,
    print_fields,
    print_json,
    print_rows,
    printable,
    printable_lines,
    server_options,
    speaks_to_server,
    status_of,
)
from headway.cli.submit import pair
from headway.cli.watching import JobWatch
from headway.core.states import JobState

if TYPE_CHECKING:
    from headway.client import Job

_job_argument = click.argument("job_id", metavar="ID", shell_complete=complete_job)


@click.group("jobs")
def jobs_group() -> None:
    """List, watch, cancel and retry jobs.

    An ID may be shortened to any beginning that no other job's id shares.
    """


@jobs_group.command("list")
@click.option(
    "--state",
    multiple=True,
    type=click.Choice([state.value.lower() for state in JobState], case_sensitive=False),
    help="Only jobs in this state; repeatable.",
)
@click.option("--operation", shell_complete=complete_operation, help="Only this operation's.")
@click.option("--label", multiple=True, metavar="NAME=TEXT", help="Only with this label.")
@click.option("--mine", is_flag=True, help="Only those that you submitted.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@click.option("--cursor", help="Go on where the page before ended.")
@server_options
@speaks_to_server
def list_command(
    state: tuple[str, ...],
    operation: str | None,
    label: tuple[str, ...],
    mine: bool,
    limit: int,
    cursor: str | None,
    server: str | None,
    output: str,
) -> None:
    """List jobs, newest first."""
    with connect(server) as client:
        page = client.list(
            state=[JobState(name.upper()) for name in state],
            operation=operation,
            labels=dict(pair("--label", text) for text in label),
            mine=mine,
            limit=limit,
            cursor=cursor,
        )
    print_rows(
        page,
        output,
        ("ID", "OPERATION", "CREATED", "ATTEMPT", "STATUS"),
        (
            (job.id, job.operation, printable(job.created_at), str(job.attempt), status_of(job))
            for job in page.jobs
        ),
    )
    if output == "text" and page.next_cursor is not None:
        click.echo(f"More: --cursor {page.next_cursor}", err=True)


@jobs_group.command("show")
@_job_argument
@server_options
@speaks_to_server
def show_command(job_id: str, server: str | None, output: str) -> None:
    """Show one job."""
    with connect(server) as client:
        job = client.get(job_id)
    _print_job(job, output)


@jobs_group.command("logs")
@_job_argument
@click.option("--follow", "-f", is_flag=True, help="Go on until the job has ended.")
@click.option("--tail", type=click.IntRange(min=0), help="Begin with the last so many lines.")
@click.option("--since", metavar="ATTEMPT:BYTE", help="Begin at this position.")
@click.option("--attempt", type=click.IntRange(min=1), help="Only this attempt's log.")
@server_options
@speaks_to_server
def logs_command(
    job_id: str,
    follow: bool,
    tail: int | None,
    since: str | None,
    attempt: int | None,
    server: str | None,
    output: str,
) -> None:
    """Print the job's output, as it was written."""
    if follow and attempt is not None:
        raise click.UsageError("--follow shows every attempt; leave --attempt out")
    with connect(server) as client:
        if follow:
            job = client.get(job_id)
            JobWatch(client, job.id, sys.stdout).until_ended(tail=tail, since=since)
            return
        for text in client.logs(job_id, tail=tail, since=since, attempt=attempt):
            sys.stdout.write(text)
        sys.stdout.flush()


@jobs_group.command("wait")
@_job_argument
@click.option("--timeout-s", type=click.FloatRange(min=0), help="Wait no longer than this.")
@server_options
@speaks_to_server
def wait_command(job_id: str, timeout_s: float | None, server: str | None, output: str) -> None:
    """Wait until the job has ended; the exit code tells how."""
    with connect(server) as client:
        job = client.wait(job_id, timeout_s=timeout_s)
    _print_job(job, output)
    exit_with(job)


@jobs_group.command("cancel")
@_job_argument
@server_options
@speaks_to_server
def cancel_command(job_id: str, server: str | None, output: str) -> None:
    """End the job, with all its processes. One that has ended stays as it is."""
    with connect(server) as client:
        job = client.cancel(job_id)
    print_answer(job, output, f"Job {job.id} {_after_cancel(job)}.")


def _after_cancel(job: Job) -> str:
    if not job.is_ended:
        return "was asked to stop"
    ended = "is" if job.state is JobState.CANCELLED else "had ended before:"
    return f"{ended} {status_of(job)}"


@jobs_group.command("retry")
@_job_argument
@server_options
@speaks_to_server
def retry_command(job_id: str, server: str | None, output: str) -> None:
    """Do an ended job's work again, as a new job."""
    with connect(server) as client:
        job = client.retry(job_id)
    print_answer(job, output, job.id)


@jobs_group.command("result")
@_job_argument
@click.option("--timeout-s", type=click.FloatRange(min=0), help="Wait no longer than this.")
@server_options
@speaks_to_server
def result_command(job_id: str, timeout_s: float | None, server: str | None, output: str) -> None:
    """Wait for the job and print what it returned, as JSON."""
    from headway.client import JobFailed

    with connect(server) as client:
        try:
            print_json(client.result(job_id, timeout_s=timeout_s))
        except JobFailed as error:
            click.echo(f"Error: {printable_lines(str(error))}", err=True)
            exit_with(error.job)


@jobs_group.command("events")
@_job_argument
@server_options
@speaks_to_server
def events_command(job_id: str, server: str | None, output: str) -> None:
    """Print what happened to the job."""
    with connect(server) as client:
        events = client.events(job_id)
    print_rows(
        events,
        output,
        ("#", "AT", "ATTEMPT", "EVENT", "DETAIL"),
        (
            (
                str(event.number),
                printable(event.at),
                str(event.attempt or ""),
                printable(event.kind),
                printable(event.detail) if event.detail else "",
            )
            for event in events
        ),
    )


@jobs_group.command("why")
@_job_argument
@server_options
@speaks_to_server
def why_command(job_id: str, server: str | None, output: str) -> None:
    """Say why the job does not run now."""
    with connect(server) as client:
        why = client.why(job_id)
    if output == "json":
        print_json(why)
    else:
        click.echo(printable(why.text))
        if why.estimated_start is not None:
            at = why.estimated_start.astimezone().strftime("%H:%M:%S")
            click.echo(f"It will probably start at about {at}.")


@jobs_group.command("artifacts")
@_job_argument
@click.option("--get", "name", metavar="NAME", help="Print this artifact's content.")
@click.option("--to", type=click.Path(path_type=Path), help="Write it to this file instead.")
@server_options
@speaks_to_server
def artifacts_command(
    job_id: str, name: str | None, to: Path | None, server: str | None, output: str
) -> None:
    """List the files that the job left behind, or fetch one."""
    with connect(server) as client:
        if name is not None:
            content = client.artifact(job_id, name)
            if to is None:
                sys.stdout.buffer.write(content)
            else:
                to.write_bytes(content)
            return
        artifacts = client.artifacts(job_id)
    print_rows(
        artifacts,
        output,
        ("NAME", "BYTES", "TYPE", "ATTEMPT"),
        (
            (each.name, str(each.size_bytes), printable(each.media_type), str(each.attempt))
            for each in artifacts
        ),
    )


def _print_job(job: Job, output: str) -> None:
    if output == "json":
        print_json(job)
        return
    print_fields(
        [
            ("id", job.id),
            ("operation", job.operation),
            ("status", status_of(job)),
            ("numbers", numbers_of(job)),
            ("waits for", job.wait_detail),
            ("lane", job.lane),
            ("attempt", job.attempt or None),
            ("priority", job.priority or None),
            ("created", job.created_at),
            ("created by", job.created_by),
            ("started", job.started_at),
            ("ended", job.ended_at),
            ("concurrency key", job.concurrency_key),
            ("labels", job.labels),
            ("retry of", job.retry_of),
        ]
    )
    if job.error is not None and job.error.traceback:
        click.echo(f"\n{printable_lines(job.error.traceback.rstrip())}")
