"""`headway admin limits`: what workspaces and users may run and have waiting, and locks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headway.cli.output import (
    connect,
    print_answer,
    print_json,
    print_rows,
    print_table,
    printable,
    server_options,
    speaks_to_server,
)

if TYPE_CHECKING:
    from headway.client.limit_models import Limit, LimitPage

_EVERY = "*"


@click.group("limits")
def limits_group() -> None:
    """Set how much workspaces and users may run, and locks."""


@limits_group.command("show")
@server_options
@speaks_to_server
def show_command(server: str | None, output: str) -> None:
    """Show the limits, and who runs and waits how much."""
    with connect(server) as client:
        page = client.limits.show()
    if output == "json":
        print_json(page)
        return
    print_table(
        ("WORKSPACE", "USER", "RUNNING", "WAITING", "WEIGHT"),
        [
            (
                printable(each.workspace),
                printable(each.user or "-"),
                _number(each.max_running),
                _number(each.max_queued),
                _number(each.weight),
            )
            for each in page.limits
        ],
    )
    click.echo(f"\n{_of_all(page)}\n")
    print_table(
        ("WORKSPACE", "USER", "RUNS NOW", "WAITS NOW"),
        [
            (printable(each.workspace), printable(each.user), str(each.running), str(each.waiting))
            for each in page.use
        ],
    )


@limits_group.command("set")
@click.argument("workspace", metavar="WORKSPACE")
@click.option("--user", metavar="NAME", help="Of this user in the workspace; * for each user.")
@click.option("--max-running", type=click.IntRange(min=0), help="Jobs that may run at a time.")
@click.option("--max-queued", type=click.IntRange(min=0), help="Jobs that may wait.")
@click.option("--weight", type=click.FloatRange(min=0.001), help="Share relative to others'.")
@server_options
@speaks_to_server
def set_command(
    workspace: str,
    user: str | None,
    max_running: int | None,
    max_queued: int | None,
    weight: float | None,
    server: str | None,
    output: str,
) -> None:
    """Set the limits of WORKSPACE (* for each).

    They take the place of those it had. An option that is left out sets no limit of that kind;
    without any, the limits are removed and the more general ones hold.
    """
    from headway.client.asking import checked
    from headway.client.limit_models import LimitRequest

    wishes = {"max_running": max_running, "max_queued": max_queued, "weight": weight}
    request = checked(LimitRequest, **wishes)
    with connect(server) as client:
        limit = client.limits.set(workspace, user, request)
    print_answer(limit, output, _sentence(workspace, user, limit))


def _sentence(workspace: str, user: str | None, limit: Limit) -> str:
    whose = "each workspace" if workspace == _EVERY else f"workspace {printable(workspace)}"
    if user is not None:
        whose = f"{'each user' if user == _EVERY else printable(user)} in {whose}"
    if limit.max_running is limit.max_queued is limit.weight is None:
        return f"The limits of {whose} are removed."
    return (
        f"{whose}: running {_number(limit.max_running)}, waiting {_number(limit.max_queued)},"
        f" weight {_number(limit.weight)}"
    )


@limits_group.command("locks")
@server_options
@speaks_to_server
def locks_command(server: str | None, output: str) -> None:
    """Show the locks: what shares one, and how many jobs may hold it."""
    with connect(server) as client:
        locks = client.limits.locks()
    print_rows(
        locks,
        output,
        ("LOCK", "PLACES", "MEMBERS"),
        (
            (printable(each.name), str(each.max_running), printable(", ".join(each.members)))
            for each in locks
        ),
    )


@limits_group.command("lock")
@click.argument("name", metavar="NAME")
@click.option(
    "--places",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many jobs may hold it at a time.",
)
@click.option(
    "--member", "members", multiple=True, metavar="KEY",
    help="A concurrency key that shares it; repeatable.",
)  # fmt: skip
@server_options
@speaks_to_server
def lock_command(
    name: str, places: int, members: tuple[str, ...], server: str | None, output: str
) -> None:
    """Let jobs of several concurrency keys share a lock.

    Jobs of all the keys KEY share the PLACES of the lock NAME. Without members NAME is a
    concurrency key itself. `headway jobs show ID` says a job's key; that of a load test is
    `target http://HOST:PORT`, or `target GROUP` where the target is registered, with its lock
    group.
    """
    from headway.client.asking import checked
    from headway.client.limit_models import LockRequest

    with connect(server) as client:
        lock = client.limits.set_lock(
            checked(LockRequest, name=name, max_running=places, members=list(members))
        )
    print_answer(lock, output, f"{printable(lock.name)}: {lock.max_running} at a time")


@limits_group.command("unlock")
@click.argument("name", metavar="NAME")
@server_options
@speaks_to_server
def unlock_command(name: str, server: str | None, output: str) -> None:
    """Remove the lock NAME. Each of its keys is a lock of its own again."""
    with connect(server) as client:
        client.limits.remove_lock(name)
    print_answer({"removed": name}, output, f"{printable(name)} is removed.")


def _of_all(page: LimitPage) -> str:
    jobs, size_bytes = (
        "any number" if each is None else str(each)
        for each in (page.max_queued, page.max_queued_bytes)
    )
    return (
        f"All workspaces together: {jobs} jobs may wait, with {size_bytes} bytes of input"
        " (max_queued and max_queued_bytes in the file of `headway serve`)."
    )


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    # With :g a million is 1e+06.
    return str(value) if isinstance(value, int) else f"{value:g}"
