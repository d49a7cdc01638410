"""`headway secrets`: keep the keys of targets with a server, where nobody reads them back."""

from __future__ import annotations

import sys

import click

from headway.cli.output import (
    connect,
    print_answer,
    print_rows,
    printable,
    server_options,
    speaks_to_server,
)
from headway.core.errors import ConfigError


@click.group("secrets")
def secrets_group() -> None:
    """Set, list and remove the secrets of a workspace.

    A value is asked for, or read from standard input; it is never an argument, which others on this
    host could see, and no command shows it again. Jobs name secrets:
    `headway submit ... --secret ENV=NAME`, `headway bench ... --api-key-secret NAME`.
    """


@secrets_group.command("set")
@click.argument("name", metavar="NAME")
@server_options
@speaks_to_server
def set_command(name: str, server: str | None, output: str) -> None:
    """Set a secret, new or in the place of an old one."""
    value = _value(name)
    with connect(server) as client:
        secret = client.provisions.set_secret(name, value)
    print_answer(secret, output, f"{printable(secret.name)} is set.")


@secrets_group.command("list")
@server_options
@speaks_to_server
def list_command(server: str | None, output: str) -> None:
    """List the secrets: names, who set them, and when."""
    with connect(server) as client:
        secrets = client.provisions.secrets()
    print_rows(
        secrets,
        output,
        ("NAME", "SET", "BY"),
        (
            (printable(each.name), printable(each.changed_at), printable(each.changed_by))
            for each in secrets
        ),
    )


@secrets_group.command("remove")
@click.argument("name", metavar="NAME")
@server_options
@speaks_to_server
def remove_command(name: str, server: str | None, output: str) -> None:
    """Remove a secret. Jobs that name it fail when their turn comes."""
    with connect(server) as client:
        client.provisions.remove_secret(name)
    print_answer({"removed": name}, output, f"{printable(name)} is removed.")


@secrets_group.command("rotate")
@server_options
@speaks_to_server
def rotate_command(server: str | None, output: str) -> None:
    """Seal all secrets with a new key.

    Of all workspaces; for administrators.
    """
    with connect(server) as client:
        count = client.provisions.rotate()
    print_answer({"resealed": count}, output, f"Secrets sealed with a new key: {count}.")


def _value(name: str) -> str:
    """What a person types without an echo, or all of standard input but its last line end."""
    if sys.stdin.isatty():
        value = click.prompt(f"Value of {name}", hide_input=True, err=True)
    else:
        value = sys.stdin.read().removesuffix("\n").removesuffix("\r")
    if not value:
        raise ConfigError("no value came on standard input")
    return str(value)
