"""`headway operations`: what a server can be asked to do."""

from __future__ import annotations

import click

from headway.cli.output import connect, print_rows, printable, server_options, speaks_to_server


@click.command("operations")
@server_options
@speaks_to_server
def operations_command(server: str | None, output: str) -> None:
    """List the operations that `headway submit` takes.

    As JSON with the schema of each one's input.
    """
    with connect(server) as client:
        operations = client.operations()
    print_rows(
        operations,
        output,
        ("NAME", "LANE", "WHAT IT DOES", "INPUT"),
        (
            (
                printable(each.name),
                each.lane,
                printable(each.description.partition("\n")[0]),
                printable(" ".join((each.input_schema or {}).get("properties", {}))),
            )
            for each in operations
        ),
    )
