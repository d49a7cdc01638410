"""`headway submit`: hand a job to a server, and watch it if asked to."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.completion import complete_operation
from headway.cli.output import (
    connect,
    exit_with,
    print_json,
    server_options,
    speaks_to_server,
    status_of,
)
from headway.cli.watching import JobWatch
from headway.core.clock import SystemClock
from headway.core.errors import ConfigError
from headway.core.nesting import MAX_LEVELS

if TYPE_CHECKING:
    from headway.client import Client, Job, SubmitOptions


@dataclass(frozen=True)
class _Wishes:
    """What the options say about the job, as they stand on the command line."""

    priority: int
    delay_s: float | None
    timeout_s: float | None
    max_attempts: int | None
    concurrency_key: str | None
    label: tuple[str, ...]
    env: tuple[str, ...]
    secret: tuple[str, ...]
    config: tuple[str, ...]
    ignore_result: bool

    def options(self, now: datetime) -> SubmitOptions:
        from headway.client import SubmitOptions
        from headway.client.asking import checked

        return checked(
            SubmitOptions,
            priority=self.priority,
            not_before=None if self.delay_s is None else _later(now, self.delay_s),
            timeout_s=self.timeout_s,
            max_attempts=self.max_attempts,
            concurrency_key=self.concurrency_key,
            labels=dict(pair("--label", text) for text in self.label),
            env=dict(pair("--env", text) for text in self.env),
            secrets=dict(_secret(text) for text in self.secret),
            config=parse_input(self.config, None),
            ignore_result=self.ignore_result,
        )


@click.command("submit")
@click.argument("operation", shell_complete=complete_operation)
@click.argument("fields", nargs=-1, metavar="[KEY=TEXT | KEY:=JSON]...")
@click.option("--json-input", metavar="JSON|@FILE|-", help="The whole input; fields go over it.")
@click.option("--wait", is_flag=True, help="Show output and progress, then the result.")
@click.option("--priority", type=int, default=0, show_default=True, help="Larger runs first.")
@click.option("--delay-s", type=click.FloatRange(min=0), help="Not before so many seconds.")
@click.option("--timeout-s", type=float, help="Longest running time of an attempt.")
@click.option("--max-attempts", type=int, help="Attempts before the job has failed.")
@click.option("--concurrency-key", help="One job with this key runs at a time.")
@click.option("--label", multiple=True, metavar="NAME=TEXT", help="For finding it; repeatable.")
@click.option("--env", multiple=True, metavar="NAME=TEXT", help="Environment; repeatable.")
@click.option(
    "--secret", multiple=True, metavar="ENV[=NAME]",
    help="Variable that gets the value of a secret of the workspace; repeatable.",
)  # fmt: skip
@click.option("--config", multiple=True, metavar="KEY=TEXT", help="Configuration; repeatable.")
@click.option("--ignore-result", is_flag=True, help="Do not keep the result.")
@click.option("--idempotency-key", help="Submitting again with it gives the same job.")
@server_options
@speaks_to_server
def submit_command(
    operation: str,
    fields: tuple[str, ...],
    json_input: str | None,
    wait: bool,
    idempotency_key: str | None,
    server: str | None,
    output: str,
    **wishes: Any,
) -> None:
    """Submit OPERATION with the input that the fields give.

    KEY=TEXT gives a text, which the server converts to the field's type; KEY:=JSON gives any JSON.
    The exit code tells the outcome when --wait is given.
    """
    options = _Wishes(**wishes).options(SystemClock().now())
    sent = parse_input(fields, json_input)
    with connect(server) as client:
        job = client.submit(operation, sent, options=options, idempotency_key=idempotency_key)
        if wait:
            show_to_the_end(client, job, output)
        elif output == "json":
            print_json(job)
        else:
            click.echo(job.id)


def show_to_the_end(client: Client, job: Job, output: str) -> None:
    """Watch the job, print its result, and exit with the code of its outcome."""
    # With --output json standard output is one document; the job's own words go beside it.
    watch = JobWatch(client, job.id, sys.stderr if output == "json" else sys.stdout)
    ended = watch.until_ended()
    if output == "json":
        print_json(ended)
    click.echo(f"Job {ended.id} {status_of(ended)}.", err=True)
    exit_with(ended)
    if output == "text":
        result = client.result(ended.id)
        if result is not None:
            print_json(result)


def parse_input(fields: tuple[str, ...], whole: str | None) -> dict[str, Any]:
    """The input object: the whole one, with the single fields laid over it.

    Raises:
        ConfigError: something is not written as it must be.
    """
    parsed = {} if whole is None else _json_object(_read(whole))
    for field in fields:
        name, separator, text = field.partition("=")
        if not separator or not name.strip(":"):
            raise ConfigError(f"{field!r} is not KEY=TEXT or KEY:=JSON")
        if name.endswith(":"):
            parsed[name[:-1]] = _json(text, field)
        else:
            parsed[name] = text
    return parsed


def _read(whole: str) -> str:
    if whole == "-":
        return sys.stdin.read()
    if not whole.startswith("@"):
        return whole
    try:
        return Path(whole[1:]).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {whole[1:]}: {error.strerror}") from error


def _json_object(text: str) -> dict[str, Any]:
    value = _json(text, "--json-input")
    if not isinstance(value, dict):
        raise ConfigError("--json-input must be a JSON object, such as '{\"epochs\": 5}'")
    return value


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{where}: this is not JSON: {error}") from None
    except RecursionError:
        raise ConfigError(f"{where}: nested too deeply; {MAX_LEVELS} levels can be read") from None


def _later(now: datetime, delay_s: float) -> datetime:
    try:
        return now + timedelta(seconds=delay_s)
    except (OverflowError, ValueError):
        raise ConfigError("--delay-s: that is beyond the calendar; write less") from None


def _secret(text: str) -> tuple[str, str]:
    """`ENV=NAME`; a variable alone is called like its secret."""
    variable, _, name = text.partition("=")
    return variable, name or variable


def pair(option: str, text: str) -> tuple[str, str]:
    """The two sides of NAME=TEXT.

    Raises:
        ConfigError: it is not written so.
    """
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise ConfigError(f"{option} {text!r} is not NAME=TEXT")
    return name, value
