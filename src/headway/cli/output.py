"""How the commands that speak to a server print, fail and exit."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from headway.cli.exit_codes import ExitCode
from headway.core.states import JobState

if TYPE_CHECKING:
    from pydantic import BaseModel

    from headway.client import Client, Job

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

_CACERT = "headway.cacert"
_WORKSPACE = "headway.workspace"
_JSON = "headway.json"
_WHERE_SERVERS_ARE = (
    "Start one with `headway serve`, or name another by --server or HEADWAY_SERVER."
)
_EXIT_CODE_OF_STATE = {
    JobState.SUCCEEDED: ExitCode.OK,
    JobState.FAILED: ExitCode.JOB_FAILED,
    JobState.CANCELLED: ExitCode.JOB_CANCELLED,
}


def server_options(command: F) -> F:
    """Adds `--server`, `--workspace`, `--cacert`, `--output` and `--json` to a command."""
    for option in (
        click.option(
            "--workspace",
            "-w",
            "in_workspace",  # commands have arguments called `workspace`
            envvar="HEADWAY_WORKSPACE",
            expose_value=False,
            callback=_remember_workspace,
            help="Where; default HEADWAY_WORKSPACE, else the one that was logged in to.",
        ),
        click.option(
            "--server",
            envvar="HEADWAY_SERVER",
            metavar="URL",
            help="The server; default HEADWAY_SERVER, else this host.",
        ),
    ):
        command = option(command)
    return answer_options(command)


def answer_options(command: F) -> F:
    """Adds `--cacert`, `--output`, `--json` to a command that names its server in another way."""
    for option in (
        click.option(
            "--json",
            is_flag=True,
            is_eager=True,  # Before --output, whatever the order on the command line.
            expose_value=False,
            callback=_remember_json,
            help="Short for --output json.",
        ),
        click.option(
            "--cacert",
            type=click.Path(dir_okay=False),
            envvar="HEADWAY_CACERT",
            metavar="FILE",
            expose_value=False,
            callback=_remember_cacert,
            help="Authority that signed the server's certificate; default HEADWAY_CACERT.",
        ),
        click.option(
            "--output",
            type=click.Choice(["text", "json"]),
            default="text",
            show_default=True,
            callback=_output_asked,
            help="How to print the answer.",
        ),
    ):
        command = option(command)
    return command


def _remember_cacert(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    # For `connect`, so that commands need not pass it on.
    ctx.meta[_CACERT] = value


def _remember_workspace(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    ctx.meta[_WORKSPACE] = value


def _remember_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta[_JSON] = value


def _output_asked(ctx: click.Context, _: click.Parameter, value: str) -> str:
    return "json" if ctx.meta.get(_JSON) else value


def speaks_to_server(command: Callable[P, R]) -> Callable[P, R]:
    """Turns what a client raises into one sentence and the exit code that belongs to it."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        from headway.core.errors import HeadwayError

        try:
            return command(*args, **kwargs)
        except HeadwayError as error:
            code = _exit_code_of_error(error)
            if code is None:
                raise
            click.echo(f"Error: {printable_lines(str(error))}", err=True)
            if code is ExitCode.SERVER_UNREACHABLE:
                click.echo(_WHERE_SERVERS_ARE, err=True)
            raise click.exceptions.Exit(code) from error

    return run


def connect(
    server: str | None, *, token: str | None = None, workspace: str | None = None
) -> Client:
    """A client of the server that the command line names.

    Args:
        server: As the option gave it.
        token: Shown instead of what the environment or a login has.
        workspace: Instead of the option.
    """
    from headway.client import Client, RetryPolicy

    # A person waits: long enough for a restart of the server, short enough to say it is not there.
    context = click.get_current_context(silent=True)
    cacert = None if context is None else context.meta.get(_CACERT)
    if workspace is None and context is not None:
        workspace = context.meta.get(_WORKSPACE)
    return Client(
        server,
        retry=RetryPolicy(patience_s=5.0),
        cacert=cacert,
        token=token,
        workspace=workspace,
    )


def exit_with(job: Job) -> None:
    """End the command with the exit code of the job's outcome; return when it succeeded."""
    code = exit_code_of(job)
    if code is not ExitCode.OK:
        raise click.exceptions.Exit(code)


def exit_code_of(job: Job) -> ExitCode:
    """The exit code of an ended job."""
    return _EXIT_CODE_OF_STATE[job.state]


def print_json(value: BaseModel | Sequence[BaseModel] | Any) -> None:
    """One JSON document on standard output; what could drive a terminal is escaped in it."""
    text = json.dumps(_jsonable(value), indent=2, ensure_ascii=False)
    if not text.replace("\n", "").isprintable():
        text = "".join(each if _is_harmless(each) else json.dumps(each)[1:-1] for each in text)
    click.echo(text)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns as wide as their widest cell."""
    lines = [list(headings), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def print_rows(
    answer: Any, output: str, headings: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    """What a command that lists has found: as JSON the answer itself, as text a table of `rows`."""
    if output == "json":
        print_json(answer)
    else:
        print_table(headings, rows)


def print_answer(answer: Any, output: str, sentence: str) -> None:
    """What a command has done: as JSON the answer itself, as text one sentence."""
    if output == "json":
        print_json(answer)
    else:
        click.echo(sentence)


def print_fields(fields: Iterable[tuple[str, Any]]) -> None:
    """Names and values, one a line; what is empty is left out."""
    shown = [(name, value) for name, value in fields if value not in (None, "", {}, [])]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        click.echo(f"{name.ljust(width)}  {printable(value)}")


def printable(value: Any) -> str:
    """A value as one line that cannot move the cursor or change colours.

    What jobs and other users write must not drive the terminal of who reads it.
    """
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


def printable_lines(text: str) -> str:
    """As `printable`, for text that may have several lines."""
    return "".join(each if _is_harmless(each) else "\N{REPLACEMENT CHARACTER}" for each in text)


def _is_harmless(character: str) -> bool:
    return character.isprintable() or character in "\n\t"


def status_of(job: Job) -> str:
    """A job's state in a few words: `running 40% epoch 2`, `pending (backoff)`, `failed: …`."""
    if job.state is JobState.PENDING:
        return f"pending ({job.wait_reason})" if job.wait_reason else "pending"
    if job.state is JobState.RUNNING:
        return " ".join(["running", *_progress_words(job)])
    if job.state is JobState.FAILED and job.error is not None:
        return f"{job.outcome}: {printable(job.error.message)}"
    return str(job.outcome or job.state).lower()


def _progress_words(job: Job) -> list[str]:
    if job.progress is None:
        return []
    words = []
    if job.progress.fraction is not None:
        words.append(f"{job.progress.fraction:.0%}")
    if job.progress.message:
        words.append(printable(job.progress.message))
    return words


def numbers_of(job: Job) -> str:
    """The numbers that a job has reported last: `loss=0.12 epoch=3`; empty when there are none.

    Not in its status: a load test reports a score of them, which no column of a list can hold.
    """
    numbers = {} if job.progress is None else job.progress.numbers
    return printable(" ".join(f"{name}={value:g}" for name, value in numbers.items()))


def _exit_code_of_error(error: Exception) -> ExitCode | None:
    from headway.client import (
        DeadlineExceeded,
        Denied,
        InvalidRequest,
        NotFound,
        ServerUnreachable,
    )

    codes = (
        (NotFound, ExitCode.NOT_FOUND),
        (ServerUnreachable, ExitCode.SERVER_UNREACHABLE),
        (DeadlineExceeded, ExitCode.TIMED_OUT_WAITING),
        (InvalidRequest, ExitCode.USAGE),
        (Denied, ExitCode.NOT_ALLOWED),
    )
    return next((code for kind, code in codes if isinstance(error, kind)), None)


def _jsonable(value: Any) -> Any:
    from pydantic import BaseModel

    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, list | tuple):
        return [_jsonable(each) for each in value]
    return value
