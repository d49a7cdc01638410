"""`headway targets`, also `headway admin targets`: what may be measured on a shared server."""

from __future__ import annotations

import click

from headway.cli.output import (
    connect,
    print_answer,
    print_rows,
    printable,
    server_options,
    speaks_to_server,
)


@click.group("targets")
def targets_group() -> None:
    """Register what may be measured on a shared server.

    Administrators do; everybody may list.
    """


@targets_group.command("set")
@click.argument("name", metavar="NAME")
@click.argument("url", metavar="URL")
@click.option(
    "--for", "workspaces", multiple=True, required=True, metavar="WORKSPACE",
    help="Who may measure it; repeatable.",
)  # fmt: skip
@click.option("--max-rate", type=float, help="Most requests a second that a run may ask for.")
@click.option("--max-streams", type=click.IntRange(min=1), help="Most requests in flight.")
@click.option(
    "--lock-group", metavar="NAME",
    help="Targets of one group, which share a GPU, are measured one at a time.",
)  # fmt: skip
@click.option("--health-path", default="/health", show_default=True, help="Asked before a run.")
@click.option("--secret", metavar="NAME", help="Secret of the workspace that is the API key.")
@click.option(
    "--reach", type=click.Choice(["public", "private", "loopback"]),
    help="Where its addresses may lie; default: where they lie now.",
)  # fmt: skip
@server_options
@speaks_to_server
def set_command(
    name: str,
    url: str,
    workspaces: tuple[str, ...],
    max_rate: float | None,
    max_streams: int | None,
    lock_group: str | None,
    health_path: str,
    secret: str | None,
    reach: str | None,
    server: str | None,
    output: str,
) -> None:
    """Register the target NAME at URL, or change it."""
    from headway.client.asking import checked
    from headway.client.provision_models import TargetRequest

    fields = {
        "url": url,
        "workspaces": list(workspaces),
        "max_rate_per_s": max_rate,
        "max_streams": max_streams,
        "lock_group": lock_group,
        "health_path": health_path,
        "secret": secret,
        "reach": reach,
    }
    request = checked(TargetRequest, **fields)
    with connect(server) as client:
        target = client.provisions.set_target(name, request)
    where = f"{printable(target.url)} ({target.reach})"
    print_answer(target, output, f"{printable(target.name)} is registered: {where}")


@targets_group.command("list")
@server_options
@speaks_to_server
def list_command(server: str | None, output: str) -> None:
    """List the registered targets of your workspace.

    For an administrator: all.
    """
    with connect(server) as client:
        targets = client.provisions.targets()
    headings = ("NAME", "URL", "REACH", "MAX RATE", "MAX STREAMS", "LOCK GROUP", "WORKSPACES")
    print_rows(
        targets,
        output,
        headings,
        (
            (
                printable(each.name),
                printable(each.url),
                each.reach,
                "-" if each.max_rate_per_s is None else f"{each.max_rate_per_s:g}/s",
                "-" if each.max_streams is None else str(each.max_streams),
                printable(each.lock_group),
                printable(",".join(each.workspaces)),
            )
            for each in targets
        ),
    )


@targets_group.command("remove")
@click.argument("name", metavar="NAME")
@server_options
@speaks_to_server
def remove_command(name: str, server: str | None, output: str) -> None:
    """Remove a target. Jobs that wait for it fail when their turn comes."""
    with connect(server) as client:
        client.provisions.remove_target(name)
    print_answer({"removed": name}, output, f"{printable(name)} is removed.")
