"""`headway login`, `logout`, `whoami`: the access token of a server, and whom it makes one."""

from __future__ import annotations

import sys

import click

from headway.cli.output import (
    answer_options,
    connect,
    print_fields,
    print_json,
    print_table,
    server_options,
    speaks_to_server,
)


@click.command("login")
@click.argument("server", metavar="URL")
@click.option("--workspace", "-w", help="Where to work unless another is named.")
@answer_options
@speaks_to_server
def login_command(server: str, workspace: str | None, output: str) -> None:
    """Keep an access token for the server at URL.

    The token is asked for, or read from standard input; it is no option, because command lines can
    be seen by everybody on the machine. It is kept in a file that only you can read.
    """
    from headway.client import admin
    from headway.client.address import server_address
    from headway.client.credentials import Login, LoginFiles, check_token

    address = server_address(server)
    token = _asked_token(address)
    check_token(token)
    with connect(address, token=token, workspace=workspace) as client:
        me = client.perform(admin.me())
    path = LoginFiles().keep(Login(server=address, token=token, workspace=workspace))
    if output == "json":
        print_json(me)
        return
    click.echo(f"You are {me.user} at {address}; the token is kept in {path}")


@click.command("logout")
@server_options
@click.option("--revoke", is_flag=True, help="Also revoke the token: it is good nowhere any more.")
@speaks_to_server
def logout_command(server: str | None, revoke: bool, output: str) -> None:
    """Forget the access token that is kept for a server."""
    from headway.client import admin
    from headway.client.address import server_address
    from headway.client.credentials import LoginFiles

    address = server_address(server)
    if revoke:
        with connect(address) as client:
            me = client.perform(admin.me())
            if me.token_id is not None:
                client.perform(admin.revoke_token(me.token_id))
    forgotten = LoginFiles().forget(address)
    if output == "json":
        print_json({"server": address, "forgotten": forgotten})
        return
    click.echo("Forgotten." if forgotten else f"No token was kept for {address}.")


@click.command("whoami")
@server_options
@speaks_to_server
def whoami_command(server: str | None, output: str) -> None:
    """Whom the server takes you for, and where you may work."""
    from headway.client import admin

    with connect(server) as client:
        me = client.perform(admin.me())
    if output == "json":
        print_json(me)
        return
    print_fields(
        [
            ("user", me.user),
            ("workspace", me.workspace),
            ("role", me.role),
            ("administrator", "yes" if me.administrator else None),
            ("token", me.token_id),
            ("expires", me.expires_at),
        ]
    )
    if len(me.workspaces) > 1:
        print_table(("WORKSPACE", "ROLE"), [(each.workspace, each.role) for each in me.workspaces])


def _asked_token(address: str) -> str:
    if sys.stdin.isatty():
        token: str = click.prompt(f"Access token for {address}", hide_input=True)
        return token.strip()
    return sys.stdin.readline().strip()
