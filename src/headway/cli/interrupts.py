"""Ctrl-C while a load runs: once ends it gracefully, twice at once."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator

import click


@contextlib.contextmanager
def interrupts(stop: Callable[[], None], abort: Callable[[], None]) -> Iterator[None]:
    """Hear SIGINT and SIGTERM on the running event loop.

    Args:
        stop: Called by the first; requests in flight may finish.
        abort: Called by the second.
    """
    loop = asyncio.get_running_loop()
    asked = False

    def interrupt() -> None:
        nonlocal asked
        if asked:
            abort()
            return
        asked = True
        click.echo("\nStopping; requests in flight may finish. Ctrl-C again ends now.", err=True)
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
