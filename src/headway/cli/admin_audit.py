"""`headway admin audit`: what administrators did, and what was denied to whom."""

from __future__ import annotations

import click

from headway.cli.output import (
    connect,
    print_rows,
    printable,
    server_options,
    speaks_to_server,
)


@click.command("audit")
@click.option("--of", "workspace", metavar="WORKSPACE", help="Only this workspace's.")
@click.option("--action", help="Only this action, such as `denied` or `token.revoke`.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@click.option("--before", type=int, metavar="NUMBER", help="Go on where the page before ended.")
@server_options
@speaks_to_server
def audit_command(
    workspace: str | None,
    action: str | None,
    limit: int,
    before: int | None,
    server: str | None,
    output: str,
) -> None:
    """Read the audit log, newest first."""
    from headway.client import admin

    ask = admin.audit(before=before, limit=limit, workspace=workspace, action=action)
    with connect(server) as client:
        page = client.perform(ask)
    print_rows(
        page,
        output,
        ("NUMBER", "AT", "WHO", "ACTION", "SUBJECT", "WORKSPACE", "TIMES", "FROM", "DETAIL"),
        (
            (
                str(line.number),
                printable(line.at),
                printable(line.user),
                line.action,
                printable(line.subject),
                printable(line.workspace or ""),
                str(line.count),
                printable(line.address or line.via),
                printable(" ".join(f"{name}={value}" for name, value in line.detail.items())),
            )
            for line in page.lines
        ),
    )
    if output == "text" and page.next_before is not None:
        click.echo(f"More: headway admin audit --before {page.next_before}", err=True)
