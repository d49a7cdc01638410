"""`headway admin tokens`: issue, list and revoke access tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from headway.cli.output import (
    connect,
    print_answer,
    print_json,
    print_rows,
    printable,
    server_options,
    speaks_to_server,
)

if TYPE_CHECKING:
    from headway.client.account_models import IssuedToken

_DAY_S = 86_400.0
_life = click.option(
    "--days",
    type=click.FloatRange(0, 3650, min_open=True),
    help="Good for so long.  [default: ever]",
)


@click.group("tokens")
def tokens_group() -> None:
    """Issue, list and revoke access tokens.

    Your own, others' for administrators, and a workspace's for its pipelines. A token is printed
    once, on standard output, and stored as a hash only.
    """


@tokens_group.command("list")
@click.option("--all", "everybody", is_flag=True, help="Everybody's; for administrators.")
@click.option("--service", metavar="WORKSPACE", help="The service tokens of a workspace.")
@server_options
@speaks_to_server
def list_tokens(everybody: bool, service: str | None, server: str | None, output: str) -> None:
    """List tokens, without their secrets."""
    from headway.client import admin

    ask = admin.service_tokens(service) if service else admin.tokens(everybody=everybody)
    with connect(server) as client:
        found = client.perform(ask).tokens
    print_rows(
        found,
        output,
        ("ID", "KIND", "LABEL", "OF", "EXPIRES", "LAST USED", "REVOKED"),
        (
            (
                each.id,
                each.kind,
                each.label,
                each.user or each.workspace or "",
                printable(each.expires_at or "never"),
                printable(each.last_used_at or "never"),
                printable(each.revoked_at or ""),
            )
            for each in found
        ),
    )


@tokens_group.command("issue")
@click.argument("label")
@click.option("--user", help="Whom for; others than yourself only as an administrator.")
@click.option("--only-in", "only", metavar="WORKSPACE", help="Good only there.")
@click.option("--role", type=click.Choice(["viewer", "user", "admin"]), help="At most this role.")
@click.option("--metrics", is_flag=True, help="Reads /metrics and nothing else.")
@_life
@server_options
@speaks_to_server
def issue_token(
    label: str,
    user: str | None,
    only: str | None,
    role: Any,
    metrics: bool,
    days: float | None,
    server: str | None,
    output: str,
) -> None:
    """Make a token that speaks for a user, called LABEL."""
    from headway.client import admin
    from headway.client.account_models import NewToken
    from headway.client.asking import checked

    with connect(server) as client:
        new = checked(
            NewToken, label=label, user=user, workspace=only, role=role, metrics=metrics,
            expires_in_s=_seconds(days),
        )  # fmt: skip
        _print(client.perform(admin.issue_token(new)), output)


@tokens_group.command("issue-service")
@click.argument("workspace")
@click.argument("label")
@click.option(
    "--role", type=click.Choice(["viewer", "user"]), default="user", show_default=True,
    help="What it may do there.",
)  # fmt: skip
@_life
@server_options
@speaks_to_server
def issue_service_token(
    workspace: str, label: str, role: Any, days: float | None, server: str | None, output: str
) -> None:
    """Make a token of WORKSPACE for a pipeline.

    It acts as service:LABEL.
    """
    from headway.client import admin
    from headway.client.account_models import NewServiceToken
    from headway.client.asking import checked

    with connect(server) as client:
        new = checked(NewServiceToken, label=label, role=role, expires_in_s=_seconds(days))
        _print(client.perform(admin.issue_service_token(workspace, new)), output)


@tokens_group.command("revoke")
@click.argument("token_id", metavar="ID")
@click.option("--service", metavar="WORKSPACE", help="It is a service token of this workspace.")
@server_options
@speaks_to_server
def revoke_token(token_id: str, service: str | None, server: str | None, output: str) -> None:
    """Revoke a token at once.

    Its ID are the twelve characters behind hw_.
    """
    from headway.client import admin

    ask = admin.revoke_service_token(service, token_id) if service else admin.revoke_token(token_id)
    with connect(server) as client:
        client.perform(ask)
    print_answer({"revoked": token_id}, output, f"{token_id} is revoked.")


def _print(issued: IssuedToken, output: str) -> None:
    if output == "json":
        print_json(issued)
        return
    click.echo(f"Keep this token ({issued.about.id}), it is not shown again.", err=True)
    click.echo(issued.token)


def _seconds(days: float | None) -> float | None:
    return None if days is None else days * _DAY_S
