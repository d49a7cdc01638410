"""How a job learns that it is to stop."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any


class JobCancelled(asyncio.CancelledError):
    """Raised in a job that is to stop: clean up within the grace period and let it pass.

    A BaseException, so that `except Exception` does not swallow it, and an
    `asyncio.CancelledError`, so that task groups and timeouts of async operations treat it as the
    cancellation that it is.
    """


@types.coroutine
def cancelled_as_job_cancelled(
    coroutine: Coroutine[Any, Any, Any], requested: Callable[[], bool]
) -> Generator[Any, Any, Any]:
    """Drive `coroutine` so that the job's cancellation shows itself as JobCancelled inside.

    `Task.cancel` throws a plain CancelledError, which `except JobCancelled` would miss. A
    cancellation that is not the job's stays as it is: `asyncio.timeout` knows its own by its exact
    type.

    Args:
        coroutine: The operation's.
        requested: Whether the job is to stop.
    """
    step, value = coroutine.send, None
    while True:
        try:
            awaited = step(value)
        except StopIteration as stop:
            return stop.value
        try:
            value = yield awaited
            step = coroutine.send
        except asyncio.CancelledError as error:
            shown = JobCancelled(*error.args) if requested() else error
            step, value = coroutine.throw, shown
        except BaseException as error:  # noqa: BLE001 - whatever it is belongs to the coroutine
            step, value = coroutine.throw, error
