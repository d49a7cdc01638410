"""SIGTERM becomes JobCancelled: once, in the operation's function, and nowhere else (trap 7)."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any

from headway.jobs.cancellation import JobCancelled, cancelled_as_job_cancelled

TEXT = "the job is to stop (SIGTERM)"


class CancelGate:
    """Lets the signal through while the function runs, and keeps it otherwise.

    A signal that comes before the function runs is remembered and raised as it begins. One that
    comes after it was left changes nothing but `requested`. The handler closes the gate before it
    raises, so clean-up code of the job and of Headway is never interrupted by a second signal.

    While `idle`, before an attempt or between two, SIGTERM ends the process: a remembered signal
    would stop the next attempt, which it was never meant for (trap 5).
    """

    def __init__(self) -> None:
        self.requested = False
        self.idle = True
        self._armed = False
        self._shielded = False
        self._cancel_task: Callable[[], object] | None = None

    def install(self) -> None:
        """Handle SIGTERM; only in a process's main thread."""
        signal.signal(signal.SIGTERM, self._on_signal)

    def call(self, function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
        """Call `function` with the gate open.

        Returns:
            Its value and None, or None and whatever it raised.
        """
        # Two nested handlers, because the inner one can itself be interrupted before it has closed
        # the gate. Once the signal has been raised the gate is closed, so the outer one cannot.
        try:
            try:
                self._armed = True
                if self.requested:
                    raise JobCancelled(TEXT)
                value = function()
                self._armed = False
            except BaseException as error:  # noqa: BLE001 - SystemExit is an error as well (trap 8)
                self._armed = False
                return None, error
            return value, None
        except JobCancelled as error:
            return None, error

    def shield(self, action: Callable[[], None]) -> None:
        """Run a short action of Headway's own whole: a signal raises behind it, not within.

        Half a frame on the control socket would make everything after it unreadable.
        """
        if threading.current_thread() is not threading.main_thread():
            action()
            return
        self._shielded = True
        try:
            action()
        finally:
            self._shielded = False
        if self.requested:
            self._raise_once()

    def call_async(
        self, function: Callable[[], Coroutine[Any, Any, Any]]
    ) -> tuple[Any, BaseException | None]:
        """Run a coroutine function in a new event loop; SIGTERM cancels its task.

        The handler never raises here: an exception thrown into the loop's own code would be
        swallowed by the callback that happens to run.
        """
        try:
            return asyncio.run(self._watched(function)), None
        except BaseException as error:  # noqa: BLE001 - as in `call`
            return None, error
        finally:
            self._cancel_task = None

    async def _watched(self, function: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        task = asyncio.ensure_future(self._driven(function()))
        loop = asyncio.get_running_loop()
        self._cancel_task = lambda: loop.call_soon_threadsafe(task.cancel, TEXT)
        if self.requested:
            self._take_cancel_task()
        try:
            return await task
        except asyncio.CancelledError as error:
            if self.requested and not isinstance(error, JobCancelled):
                raise JobCancelled(TEXT) from error
            raise

    async def _driven(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return await cancelled_as_job_cancelled(coroutine, lambda: self.requested)

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        if self.idle:
            os._exit(128 + signum)
        self.requested = True
        self._take_cancel_task()
        if not self._shielded:
            self._raise_once()

    def _raise_once(self) -> None:
        if self._armed:
            self._armed = False
            raise JobCancelled(TEXT)

    def _take_cancel_task(self) -> None:
        # Taken before it is called: a second cancellation would break into the job's clean-up.
        cancel, self._cancel_task = self._cancel_task, None
        if cancel is not None:
            cancel()
