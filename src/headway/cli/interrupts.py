"""Ctrl-C: once ends a load gracefully, twice at once; and what it must not cut in two.

The first module that the command loads, before it can let Ctrl-C wait: it loads next to nothing.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def interrupts(stop: Callable[[], None], abort: Callable[[], None]) -> Iterator[None]:
    """Hear SIGINT and SIGTERM on the running event loop.

    Args:
        stop: Called by the first; requests in flight may finish.
        abort: Called by the second.
    """
    import asyncio

    import click

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

    Loading modules is such a block: raised within, it can be lost (Python drops what is raised in
    a destructor, and the import system's locks have some), or come out as another error.

    A second one does not wait: the block may be writing to a pipe that nobody reads. Where Ctrl-C
    is ignored, as in a shell's background, it stays so. For the main thread only, like every
    handler of a signal.

    Raises:
        KeyboardInterrupt: at the end of the block, when the signal came within it.
    """
    came = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal came
        if came:
            raise KeyboardInterrupt
        came = True

    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt
