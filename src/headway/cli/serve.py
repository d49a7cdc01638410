"""`headway serve`: the API and its worker, until told to stop."""

from __future__ import annotations

import asyncio
import faulthandler
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.core.states import Lane

if TYPE_CHECKING:
    from fastapi import APIRouter

    from headway.api.extension import Extension, ExtensionParts
    from headway.api.serve_settings import ServeSettings
    from headway.dispatch.worker_life import WorkerStatus


@click.command("serve")
@click.option(
    "--operations", multiple=True, metavar="MODULE|FILE.py",
    help="Where the operations are; repeatable.",
)  # fmt: skip
@click.option("--no-bench", is_flag=True, help="Do not offer load tests as jobs.")
@click.option(
    "--host", help="Address to listen on; beyond loopback only with accounts.  [default: 127.0.0.1]"
)
@click.option("--port", type=click.IntRange(0, 65535), help="0 takes any.  [default: 8484]")
@click.option(
    "--tls-cert",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="HEADWAY_TLS_CERT",
    help="Certificate with its chain, PEM: speak https.",
)
@click.option(
    "--tls-key",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="HEADWAY_TLS_KEY",
    help="Its private key, PEM, readable by its owner only.",
)
@click.option(
    "--trusted-proxy",
    "trusted_proxies",
    multiple=True,
    metavar="ADDRESS",
    help="Believe X-Forwarded-For and -Proto of this address or network; repeatable.",
)
@click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="Answer also under this host name; repeatable.",
)
@click.option(
    "--public-url", metavar="URL", envvar="HEADWAY_PUBLIC_URL",
    help="Where people reach the server, through a proxy or under a name.",
)  # fmt: skip
@click.option(
    "--state-dir", type=click.Path(file_okay=False, path_type=Path), envvar="HEADWAY_STATE_DIR",
    help="Jobs, logs and artifacts.  [default: ~/.local/state/headway]",
)  # fmt: skip
@click.option("--long", metavar="N[+BURST]", envvar="HEADWAY_LONG", help="Slots for long jobs.")
@click.option("--short", metavar="N[+BURST]", envvar="HEADWAY_SHORT", help="Slots for short jobs.")
@click.option(
    "--inline-threads", type=click.IntRange(min=1), envvar="HEADWAY_INLINE_THREADS",
    help="Most threads of the inline lane.  [default: 128]",
)  # fmt: skip
@click.option("--drain-s", type=click.FloatRange(min=0), help="Longest drain.  [default: 30]")
@click.option(
    "--config", type=click.Path(dir_okay=False, path_type=Path), envvar="HEADWAY_CONFIG",
    help="YAML file with these and more settings; flags go over it.",
)  # fmt: skip
def serve_command(
    config: Path | None, long: str | None, short: str | None, no_bench: bool, **flags: Any
) -> None:
    """Run the job server: submit jobs to it by REST, SDK or `headway submit`.

    Load tests are jobs like others: `headway bench ... --server URL`.

    SIGTERM and Ctrl-C let running attempts finish or give them back; a second one ends at once.
    """
    from headway.api.serve_settings import lane_overrides, settings_from
    from headway.api.server import Server
    from headway.core.json_log import log_as_json
    from headway.core.loops import event_loop_factory
    from headway.dispatch.service_manager import ServiceManager
    from headway.store.sqlite.store import CONNECTIONS

    lanes = lane_overrides({Lane.LONG: long, Lane.SHORT: short})
    settings = settings_from(config, {**flags, "lanes": lanes}, built_in(no_bench))
    log_as_json()
    # A service manager's watchdog ends what hangs by SIGABRT; the log then shows where it hung.
    faulthandler.enable()
    manager = ServiceManager.from_environ(os.environ, os.getpid())
    _set_title()
    # As `python -m` has it: a module beside the person who starts the server can be named.
    sys.path.insert(0, os.getcwd())

    def ready(url: str, worker: WorkerStatus) -> None:
        slots = f"{lanes_in_words(worker.lanes)}, inline lane {settings.inline_threads}"
        budget = f"database connections: server {CONNECTIONS}, worker {worker.connections}"
        click.echo(f"Headway is ready at {url} ({slots}; {budget}; {settings.state_dir})")
        if settings.speaks_in_the_clear:
            click.echo(
                "Warning: tokens travel unencrypted; use --tls-cert and --tls-key, or a proxy"
                " named by --trusted-proxy",
                err=True,
            )

    async def serve() -> None:
        await Server(settings, ready, [_dashboard(settings)], manager).run()

    with asyncio.Runner(loop_factory=event_loop_factory()) as runner:
        runner.run(serve())


def built_in(no_bench: bool) -> tuple[str, ...]:
    """The operation modules that a server offers out of the box."""
    return () if no_bench else ("headway.operations.bench",)


def _dashboard(settings: ServeSettings) -> Extension:
    def routes(parts: ExtensionParts) -> APIRouter:
        # Imported late: the worker, in its own process, loads its modules meanwhile.
        from headway.cli.bench_arguments import spec_of
        from headway.dashboard.extension import WayIn, dashboard

        return dashboard(parts, spec_of, WayIn(settings.oidc, settings.public_url))

    return routes


def lanes_in_words(lanes: Mapping[str, Mapping[str, int]]) -> str:
    """The slots of lanes, for the line that says that all is ready."""
    return ", ".join(
        f"{name} lane {size['guaranteed']}+{size['burst']}" for name, size in lanes.items()
    )


def _set_title() -> None:
    import setproctitle

    setproctitle.setproctitle("headway: server")
