"""`headway bench --server`: a run as a job of a server, kept here in the same directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from headway.cli.bench_outcome import BenchOutput, classify, console_of, show_report
from headway.cli.bench_screen import screen_on
from headway.cli.bench_watch import BenchWatch
from headway.cli.exit_codes import ExitCode
from headway.cli.output import connect, exit_code_of, speaks_to_server, status_of
from headway.client import Client, Job, SubmitOptions
from headway.core.clock import SystemClock
from headway.core.errors import ConfigError
from headway.core.states import JobState
from headway.load.spec import RunSpec
from headway.operations.files import with_absolute_paths
from headway.operations.result import BenchResult

_CODE_OF_ERROR = {
    "headway.core.errors.TargetError": ExitCode.TARGET_UNREACHABLE,
    "headway.core.errors.ConfigError": ExitCode.USAGE,
    "headway.core.errors.InputError": ExitCode.USAGE,
    "headway.operations.bench_run.RunFailed": ExitCode.ERROR,
}
"""A run that could not take place ends with the code that it would have had here."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What is asked of the server besides the run.

    Attributes:
        target_wait_s: How long the job may wait for the target; None: as the server has it.
        detach: Do not watch.
    """

    target_wait_s: float | None = None
    detach: bool = False

    def options(self, spec: RunSpec) -> SubmitOptions:
        wait_s = self.target_wait_s
        config = {} if wait_s is None else {"target_wait_s": wait_s}
        return SubmitOptions(labels=spec.labels, config=config)


@speaks_to_server
def submit(
    server: str, spec: RunSpec, wishes: Wishes, run_dir: Path, output: BenchOutput
) -> ExitCode:
    """Submit a run, watch it, fetch its directory, and end as a local run would.

    Args:
        server: URL.
        spec: What to do. Files in it are the server's own, under the same absolute path.
        wishes: What else is asked of the server.
        run_dir: Where the run is kept here; must not hold one.
        output: What to print.
    """
    _check_free(run_dir)
    with connect(server) as client:
        asked = with_absolute_paths(spec)
        job = client.submit("bench", asked, options=wishes.options(spec))
        if wishes.detach:
            click.echo(job.id)
            return ExitCode.OK
        return _see_through(client, job, run_dir, output)


@speaks_to_server
def attach(server: str | None, job_id: str, run_dir: Path, output: BenchOutput) -> ExitCode:
    """Come back to a run that was submitted before; it may have ended meanwhile.

    Args:
        server: URL; None: HEADWAY_SERVER, else this host.
        job_id: Id, or the beginning of one.
        run_dir: As for `submit`.
        output: What to print.
    """
    _check_free(run_dir)
    with connect(server) as client:
        job = client.get(job_id)
        if job.operation != "bench":
            raise ConfigError(
                f"job {job.id} is no load test but {job.operation}; watch it with "
                f"`headway jobs logs {job.id} --follow`"
            )
        return _see_through(client, job, run_dir, output)


def _see_through(client: Client, job: Job, run_dir: Path, output: BenchOutput) -> ExitCode:
    screen = screen_on(console_of(stderr=True), output.quiet)
    screen.line(f"job {job.id} on {client.server}; Ctrl-C leaves it running")
    try:
        ended = BenchWatch(client, job.id, screen, SystemClock()).until_ended()
        return _conclude(client, ended, run_dir, output)
    except KeyboardInterrupt:
        click.echo(_farewell(client, job), err=True)
        return ExitCode.INTERRUPTED


def _conclude(client: Client, job: Job, run_dir: Path, output: BenchOutput) -> ExitCode:
    """Fetch what the job left, print it, and say how it ended."""
    from headway import report
    from headway.records.run_dir import RunDirectory

    fetched = _fetch(client, job, run_dir)
    if job.state is JobState.SUCCEEDED and not fetched:
        raise ConfigError(f"the server no longer has the files of job {job.id}")
    if job.state is not JobState.SUCCEEDED:
        click.echo(f"Error: job {job.id} {status_of(job)}", err=True)
    if not fetched:
        return _code_of(job)
    built = report.build(RunDirectory(run_dir))
    if job.state is JobState.SUCCEEDED:
        result = client.result(job.id, BenchResult)
        code = classify(result.outcome, result.completed, built)
    else:
        code = _code_of(job)
    show_report(built, run_dir, code, output)
    return code


def _fetch(client: Client, job: Job, run_dir: Path) -> bool:
    """Write the job's files into `run_dir`; whether there were any."""
    names = dict.fromkeys(artifact.name for artifact in client.artifacts(job.id))
    for name in names:
        to = run_dir / name
        to.parent.mkdir(parents=True, exist_ok=True)
        client.download(job.id, name, to)
    return "run.json" in names


def _code_of(job: Job) -> ExitCode:
    """The exit code of a job without a result."""
    if job.error is not None and job.error.type in _CODE_OF_ERROR:
        return _CODE_OF_ERROR[job.error.type]
    return exit_code_of(job)


def _check_free(run_dir: Path) -> None:
    # Before anything is submitted: what came of it could not be kept.
    if (run_dir / "run.json").exists():
        raise ConfigError(f"{run_dir} already holds a run; choose another --run-dir")


def _farewell(client: Client, job: Job) -> str:
    return (
        f"\nLeft job {job.id}; it goes on without you."
        f"\n  come back:  headway bench --attach {job.id} --server {client.server}"
        f"\n  only wait:  headway jobs wait {job.id} --server {client.server}"
        f"\n  stop it:    headway jobs cancel {job.id} --server {client.server}"
    )
