"""Ctrl-C: once ends a load gracefully, twice at once; and what it must not cut in two."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

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


@contextlib.contextmanager
def deferred_interrupt() -> Iterator[None]:
    """Let Ctrl-C wait until the block is done, so that it cuts nothing in two.

    A second one does not wait: the block may be writing to a pipe that nobody reads. For the main
    thread only, like every handler of a signal.

    Raises:
        KeyboardInterrupt: at the end of the block, when the signal came within it.
    """
    came = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal came
        if came:
            raise KeyboardInterrupt
        came = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt
