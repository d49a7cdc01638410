"""Which event loop Headway's processes run on."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable


def event_loop_factory() -> Callable[[], AbstractEventLoop] | None:
    """The factory of uvloop, where that is installed; None: asyncio's own loop."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], AbstractEventLoop] = uvloop.new_event_loop
    return factory
