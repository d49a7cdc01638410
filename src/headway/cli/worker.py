"""`headway worker`: run jobs of a state directory, without an API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from headway.core.states import Lane


@click.command("worker")
@click.option(
    "--operations", multiple=True, metavar="MODULE|FILE.py",
    help="Where the operations are; repeatable.",
)  # fmt: skip
@click.option(
    "--state-dir", type=click.Path(file_okay=False, path_type=Path), envvar="HEADWAY_STATE_DIR",
    help="Jobs, logs and artifacts.  [default: ~/.local/state/headway]",
)  # fmt: skip
@click.option("--long", metavar="N[+BURST]", envvar="HEADWAY_LONG", help="Slots for long jobs.")
@click.option("--short", metavar="N[+BURST]", envvar="HEADWAY_SHORT", help="Slots for short jobs.")
@click.option("--drain-s", type=click.FloatRange(min=0), help="Longest drain.  [default: 30]")
@click.option("--no-bench", is_flag=True, help="Leave load tests to other workers.")
@click.pass_context
def worker_command(
    ctx: click.Context, /, long: str | None, short: str | None, no_bench: bool, **flags: Any
) -> None:
    """Run jobs of a state directory, beside the server's own worker or while it is away.

    `headway serve` starts a worker of its own; this is for more of them.
    """
    from headway.api.serve_settings import lane_overrides, settings_from
    from headway.cli.serve import built_in
    from headway.core.json_log import log_as_json
    from headway.dispatch.worker_main import run_worker

    lanes = lane_overrides({Lane.LONG: long, Lane.SHORT: short})
    settings = settings_from(None, {**flags, "lanes": lanes}, built_in(no_bench))
    log_as_json()
    ctx.exit(run_worker(settings.worker()))
