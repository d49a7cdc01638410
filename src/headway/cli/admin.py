"""`headway admin`: who may use a server. Its parts are modules of their own."""

from __future__ import annotations

import click

from headway.cli.admin_audit import audit_command
from headway.cli.admin_bootstrap import bootstrap_command
from headway.cli.admin_limits import limits_group
from headway.cli.admin_people import members_group, users_group, workspaces_group
from headway.cli.admin_targets import targets_group
from headway.cli.admin_tokens import tokens_group


@click.group("admin")
def admin_group() -> None:
    """Manage users, workspaces, members and tokens of a server.

    All of it goes over HTTP with your own token; only `bootstrap` works on the state directory, and
    so only on the server's host.
    """


for _command in (
    bootstrap_command,
    users_group,
    workspaces_group,
    members_group,
    tokens_group,
    limits_group,
    targets_group,
    audit_command,
):
    admin_group.add_command(_command)
