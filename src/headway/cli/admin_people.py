"""`headway admin users`, `workspaces`, `members`."""

from __future__ import annotations

from typing import Any

import click

from headway.cli.output import (
    connect,
    print_answer,
    print_rows,
    printable,
    server_options,
    speaks_to_server,
)

_ROLE = click.Choice(["viewer", "user", "admin"])


@click.group("users")
def users_group() -> None:
    """People's accounts."""


@users_group.command("list")
@server_options
@speaks_to_server
def list_users(server: str | None, output: str) -> None:
    """List every account."""
    from headway.client import admin

    with connect(server) as client:
        found = client.perform(admin.users()).users
    print_rows(
        found,
        output,
        ("NAME", "ADMINISTRATOR", "CREATED", "BY"),
        (
            (each.name, "yes" if each.administrator else "", printable(each.created_at),
             each.created_by)
            for each in found
        ),
    )  # fmt: skip


@users_group.command("add")
@click.argument("name")
@click.option("--administrator", is_flag=True, help="May manage the server.")
@click.option("--returning", is_flag=True, help="A removed user who comes back, with its name.")
@server_options
@speaks_to_server
def add_user(
    name: str, administrator: bool, returning: bool, server: str | None, output: str
) -> None:
    """Make an account. It is in no workspace and has no token yet.

    The name of a removed user is given to nobody else.
    """
    from headway.client import admin

    ask = admin.add_user(name, administrator=administrator, returning=returning)
    with connect(server) as client:
        added = client.perform(ask)
    print_answer(added, output, f"{added.name} has an account.")


@users_group.command("administrator")
@click.argument("name")
@click.argument("answer", type=click.Choice(["yes", "no"]))
@server_options
@speaks_to_server
def set_administrator(name: str, answer: str, server: str | None, output: str) -> None:
    """Let NAME manage the server, or no more."""
    from headway.client import admin

    with connect(server) as client:
        changed = client.perform(admin.set_administrator(name, answer == "yes"))
    words = "is an administrator" if changed.administrator else "is no administrator"
    print_answer(changed, output, f"{changed.name} {words} now.")


@users_group.command("remove")
@click.argument("name")
@server_options
@speaks_to_server
def remove_user(name: str, server: str | None, output: str) -> None:
    """Remove an account. Its tokens are revoked, its waiting jobs will fail."""
    from headway.client import admin

    with connect(server) as client:
        client.perform(admin.remove_user(name))
    print_answer({"removed": name}, output, f"{name} has no account any more.")


@click.group("workspaces")
def workspaces_group() -> None:
    """Places whose jobs only their members see."""


@workspaces_group.command("list")
@server_options
@speaks_to_server
def list_workspaces(server: str | None, output: str) -> None:
    """List the workspaces that you are in; an administrator is in all."""
    from headway.client import admin

    with connect(server) as client:
        found = client.perform(admin.workspaces()).workspaces
    print_rows(
        found,
        output,
        ("NAME", "CREATED", "BY"),
        ((each.name, printable(each.created_at), each.created_by) for each in found),
    )


@workspaces_group.command("add")
@click.argument("name")
@server_options
@speaks_to_server
def add_workspace(name: str, server: str | None, output: str) -> None:
    """Make a workspace, without members."""
    from headway.client import admin

    with connect(server) as client:
        added = client.perform(admin.add_workspace(name))
    print_answer(added, output, f"There is a workspace {added.name}.")


@workspaces_group.command("remove")
@click.argument("name")
@server_options
@speaks_to_server
def remove_workspace(name: str, server: str | None, output: str) -> None:
    """Delete a workspace. Nobody sees its jobs any more, and those that wait will fail."""
    from headway.client import admin

    with connect(server) as client:
        client.perform(admin.remove_workspace(name))
    print_answer({"removed": name}, output, f"The workspace {name} is deleted.")


@click.group("members")
def members_group() -> None:
    """Who is in a workspace, and as what: viewer, user or admin."""


@members_group.command("list")
@click.argument("workspace")
@server_options
@speaks_to_server
def list_members(workspace: str, server: str | None, output: str) -> None:
    """List the members of WORKSPACE."""
    from headway.client import admin

    with connect(server) as client:
        found = client.perform(admin.members(workspace)).members
    print_rows(found, output, ("USER", "ROLE"), ((each.user, each.role) for each in found))


@members_group.command("set")
@click.argument("workspace")
@click.argument("user")
@click.argument("role", type=_ROLE)
@server_options
@speaks_to_server
def set_member(workspace: str, user: str, role: Any, server: str | None, output: str) -> None:
    """Let USER into WORKSPACE as ROLE, or change the role there."""
    from headway.client import admin

    with connect(server) as client:
        member = client.perform(admin.set_member(workspace, user, role))
    print_answer(member, output, f"{member.user} is {member.role} in {member.workspace}.")


@members_group.command("remove")
@click.argument("workspace")
@click.argument("user")
@server_options
@speaks_to_server
def remove_member(workspace: str, user: str, server: str | None, output: str) -> None:
    """Remove USER from WORKSPACE. Its streams end, its waiting jobs will fail."""
    from headway.client import admin

    with connect(server) as client:
        client.perform(admin.remove_member(workspace, user))
    print_answer({"removed": user}, output, f"{user} is not in {workspace} any more.")
