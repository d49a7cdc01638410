"""`headway dashboard`: the server's pages, signed in."""

from __future__ import annotations

import webbrowser

import click

from headway.cli.output import connect, print_json, server_options, speaks_to_server


@click.command("dashboard")
@click.option("--no-open", is_flag=True, help="Only print the address.")
@server_options
@speaks_to_server
def dashboard_command(server: str | None, output: str, no_open: bool) -> None:
    """Open the dashboard in a browser, signed in as this command is.

    The address signs one browser in, once, and within a minute: do not pass it on.
    """
    with connect(server) as client:
        address = client.server + client.login_link()
    if output == "json":
        print_json({"url": address})
    else:
        click.echo(address)
    if not no_open and output == "text":
        webbrowser.open(address)
