"""The `headway` command: names every subcommand, loads only the one that is asked for.

`main` loads this module, and begins with what lets Ctrl-C wait while it does.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from dataclasses import dataclass

import click

from headway import __version__
from headway.cli.exit_codes import ExitCode
from headway.cli.interrupts import deferred_interrupt
from headway.core.errors import ConfigError, HeadwayError, TargetError


@dataclass(frozen=True)
class _Subcommand:
    """Where a subcommand lives, and its line in `headway --help`."""

    location: str
    help: str


# The one-line helps stand here and not in the modules, because listing them must import nothing:
# FastAPI alone would cost more than the 0.3 s that `headway --help` may take (P8).
_SUBCOMMANDS = {
    "bench": _Subcommand("headway.cli.bench:bench_command", "Load-test a target, here and now."),
    "report": _Subcommand("headway.cli.report:report_command", "Rebuild a run's reports."),
    "compare": _Subcommand("headway.cli.compare:compare_command", "Tell two runs apart, or not."),
    "gate": _Subcommand("headway.cli.gate:gate_command", "Pass or fail a run, for CI."),
    "ab": _Subcommand("headway.cli.ab:ab_command", "Measure two targets in turn and compare."),
    "export": _Subcommand("headway.cli.export:export_command", "Write a run in other formats."),
    "sim": _Subcommand("headway.cli.sim:sim_command", "Run a simulated inference server."),
    "demo": _Subcommand("headway.cli.demo:demo_command", "Sweep a simulated server, end to end."),
    "serve": _Subcommand("headway.cli.serve:serve_command", "Run the job server."),
    "worker": _Subcommand("headway.cli.worker:worker_command", "Run jobs for a server."),
    "chaos": _Subcommand("headway.cli.chaos:chaos_command", "Hurt a job server; see nothing lost."),
    "submit": _Subcommand("headway.cli.submit:submit_command", "Submit a job."),
    "dashboard": _Subcommand("headway.cli.dashboard:dashboard_command", "Open the dashboard."),
    "operations": _Subcommand(
        "headway.cli.operations:operations_command", "List what a server can be asked to do."
    ),
    "jobs": _Subcommand("headway.cli.jobs:jobs_group", "List, watch, cancel and retry jobs."),
    "secrets": _Subcommand("headway.cli.admin_secrets:secrets_group", "Keep keys with a server."),
    "targets": _Subcommand(
        "headway.cli.admin_targets:targets_group", "Register what a server's users may measure."
    ),
    "login": _Subcommand("headway.cli.login:login_command", "Keep an access token for a server."),
    "logout": _Subcommand("headway.cli.login:logout_command", "Forget the access token."),
    "whoami": _Subcommand("headway.cli.login:whoami_command", "Whom the server takes you for."),
    "admin": _Subcommand("headway.cli.admin:admin_group", "Users, workspaces, tokens, audit log."),
}


class LazyGroup(click.Group):
    """A group whose subcommands are imported when they are run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        subcommand = _SUBCOMMANDS.get(cmd_name)
        if subcommand is None:
            return None
        module, _, attribute = subcommand.location.partition(":")
        with deferred_interrupt():
            command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        close = difflib.get_close_matches(name, _SUBCOMMANDS, n=1)
        if name not in _SUBCOMMANDS and close and not ctx.resilient_parsing:
            ctx.fail(f"No such command '{name}'. Did you mean '{close[0]}'?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in _SUBCOMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="headway")
def headway() -> None:
    """Load-test inference services and learn the truth about what was measured."""


def exit_code_of(error: HeadwayError) -> ExitCode:
    """The exit code that belongs to an error which ended a command."""
    if isinstance(error, ConfigError):
        return ExitCode.USAGE
    if isinstance(error, TargetError):
        return ExitCode.TARGET_UNREACHABLE
    return ExitCode.ERROR


def run() -> int:
    """Run the command line; errors become one sentence and an exit code, which is returned."""
    try:
        code = headway.main(standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("Interrupted.", err=True)
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except HeadwayError as error:
        click.echo(f"Error: {error}", err=True)
        return exit_code_of(error)
    except BrokenPipeError:
        # The reader of our output went away (`headway ... | head`): nobody is left to tell.
        sys.stderr.close()
        return ExitCode.OK
    except OSError as error:
        # A directory that cannot be made, a file that is none: the machine's fault, not a bug's.
        if error.filename is None:
            raise
        click.echo(f"Error: {error.filename}: {error.strerror}", err=True)
        return ExitCode.ERROR
    return code if isinstance(code, int) else ExitCode.OK
