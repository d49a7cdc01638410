"""Shell completion of operations and job ids, asked of the server; silent when it is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from headway.client import Client

MAX_JOBS = 50


def complete_operation(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The operations whose name begins with what is typed."""
    client = _patient_for_a_moment(ctx)
    if client is None:
        return []
    with client:
        try:
            operations = client.operations()
        except Exception:  # noqa: BLE001 -- a traceback in the middle of typing helps nobody
            return []
    return [
        CompletionItem(operation.name, help=operation.description)
        for operation in operations
        if operation.name.startswith(incomplete)
    ]


def complete_job(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The newest jobs whose id begins with what is typed."""
    client = _patient_for_a_moment(ctx)
    if client is None:
        return []
    with client:
        try:
            page = client.list(limit=MAX_JOBS)
        except Exception:  # noqa: BLE001 -- a traceback in the middle of typing helps nobody
            return []
    return [
        CompletionItem(job.id, help=f"{job.operation} {job.state.lower()}")
        for job in page.jobs
        if job.id.startswith(incomplete)
    ]


def _patient_for_a_moment(ctx: click.Context) -> Client | None:
    from headway.client import Client, RetryPolicy
    from headway.core.errors import ConfigError

    try:
        return Client(ctx.params.get("server"), retry=RetryPolicy(patience_s=0.0))
    except ConfigError:
        return None
