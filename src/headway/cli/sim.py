"""`headway sim`: runs the simulated inference server in this process."""

from __future__ import annotations

import click


@click.command(
    "sim",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    short_help="Run a simulated inference server.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def sim_command(context: click.Context, arguments: tuple[str, ...]) -> None:
    """Run a simulated inference server that speaks the OpenAI API.

    `python -m headway.sim` reads the same options; they are defined there, once.
    """
    from headway.sim.process import main

    context.exit(main(arguments))
