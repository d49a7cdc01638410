"""`headway worker`: run jobs of a state directory, without an API."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.core.states import Lane

if TYPE_CHECKING:
    from headway.dispatch.worker_life import WorkerStatus


def _checked(name: str | None) -> str | None:
    if name is not None and not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,31}", name):
        raise click.BadParameter("up to 32 lower-case letters, digits and hyphens")
    return name


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
@click.option(
    "--name", metavar="NAME", callback=lambda _ctx, _option, name: _checked(name),
    help="Its name in metrics.  [default: worker-PID]",
)  # fmt: skip
@click.option(
    "--config", type=click.Path(dir_okay=False, path_type=Path), envvar="HEADWAY_CONFIG",
    help="The server's YAML file; flags go over it.",
)  # fmt: skip
def worker_command(
    config: Path | None, long: str | None, short: str | None, no_bench: bool, name: str | None,
    **flags: Any,
) -> None:  # fmt: skip
    """Run jobs of a state directory, beside the server's own worker or while it is away.

    `headway serve` starts a worker of its own; this is for more of them.
    """
    from headway.api.serve_settings import lane_overrides, settings_from
    from headway.cli.serve import built_in, lanes_in_words
    from headway.core.clock import SystemClock
    from headway.core.json_log import log_as_json
    from headway.core.loops import event_loop_factory
    from headway.dispatch.kept_worker import keep_worker
    from headway.dispatch.service_manager import ServiceManager

    lanes = lane_overrides({Lane.LONG: long, Lane.SHORT: short})
    settings = settings_from(config, {**flags, "lanes": lanes}, built_in(no_bench))
    worker = settings.worker(name or f"worker-{os.getpid()}")
    log_as_json()
    manager = ServiceManager.from_environ(os.environ, os.getpid())
    _set_title()

    def ready(status: WorkerStatus) -> None:
        slots = lanes_in_words(status.lanes)
        budget = f"{status.connections} database connections"
        where = settings.state_dir
        click.echo(f"Headway's worker {worker.name} is ready ({slots}; {budget}; {where})")

    with asyncio.Runner(loop_factory=event_loop_factory()) as runner:
        runner.run(keep_worker(worker, SystemClock(), ready, manager))


def _set_title() -> None:
    import setproctitle

    setproctitle.setproctitle("headway: keeper of a worker")
