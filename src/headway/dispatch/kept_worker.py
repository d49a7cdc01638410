"""`headway worker`: a small process that keeps a worker, as a server keeps its own.

A worker must not be alone: stopped within a write transaction it would keep every writer of the
state directory waiting, and nobody would end it. This process watches it, starts it again when it
dies, and passes signals on. It opens no database, so it may itself be stopped without harm.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable
from typing import Any

from headway.core.clock import Clock
from headway.dispatch.service_manager import ServiceManager
from headway.dispatch.service_watch import ServiceWatch
from headway.dispatch.worker_life import WorkerStatus
from headway.dispatch.worker_process import WorkerProcess
from headway.dispatch.worker_settings import WorkerSettings

_log = logging.getLogger("headway.worker")

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


async def keep_worker(
    settings: WorkerSettings,
    clock: Clock,
    on_ready: Callable[[WorkerStatus], None],
    manager: ServiceManager,
) -> None:
    """Keep a worker until a signal comes: the first drains it, the second ends it at once.

    Args:
        settings: Of the worker.
        clock: Measures its life and its silence.
        on_ready: Told when it has started.
        manager: Likewise; and that this process lives, for which its turning loop is enough.

    Raises:
        ConfigError: the worker says that it cannot work.
    """
    drain, now = asyncio.Event(), asyncio.Event()

    def signalled() -> None:
        (now if drain.is_set() else drain).set()

    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, signalled)
    worker = WorkerProcess(settings, clock)
    starting = asyncio.create_task(worker.start())
    await _first_of(starting, drain)
    watching = asyncio.create_task(ServiceWatch(manager).run())
    if starting.done():
        on_ready(await starting)
        manager.ready(f"keeping the worker {settings.name}")
        await drain.wait()
    _log.info("stopping: running attempts finish or are given back")
    manager.stopping("stopping: running attempts finish or are given back")
    stopping = asyncio.create_task(worker.stop())
    await _first_of(stopping, now)
    worker.hurry()
    await stopping
    await _cancelled(starting)
    await _cancelled(watching)


async def _cancelled(task: asyncio.Task[Any]) -> None:
    """Wait until the task has ended because it was cancelled, or had ended before."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def _first_of(task: asyncio.Task[object], event: asyncio.Event) -> None:
    """Wait until the task has ended or the event is set."""
    waiting = asyncio.create_task(event.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
