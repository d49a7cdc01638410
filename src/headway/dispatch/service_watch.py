"""The signs of life that a service manager waits for before it replaces a server.

They come from the event loop, so they stop with it; and each follows an answer of the store, so
they stop when that hangs. Only reads are asked for. A write fails too when another process holds
the lock or the disk is full: a restart frees neither, and would give back all that runs. Readiness
tells of those.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from headway.core.errors import HeadwayError
from headway.dispatch.service_manager import ServiceManager

_log = logging.getLogger(__name__)

_PAUSE_S = 0.5
"""Between two questions to a store that has refused the first."""


class ServiceWatch:
    """Gives signs of life twice in the time after which their absence counts.

    Args:
        manager: Gets them.
        read: A small read of the store; None: the turning event loop is all that there is to tell.
    """

    def __init__(
        self, manager: ServiceManager, read: Callable[[], Awaitable[object]] | None = None
    ) -> None:
        self._manager = manager
        self._read = read
        self._troubled = False

    async def run(self) -> None:
        """Give signs of life until cancelled; return at once when nobody waits for any."""
        if self._manager.watchdog_s is None:
            return
        interval_s = self._manager.watchdog_s / 2
        loop = asyncio.get_running_loop()
        while True:
            began_s = loop.time()
            await self._until_answered(interval_s)
            self._manager.alive()
            await asyncio.sleep(began_s + interval_s - loop.time())

    async def _until_answered(self, patience_s: float) -> None:
        while self._read is not None:
            try:
                await self._answer(self._read, patience_s)
            except HeadwayError as error:
                self._tell(str(error))
                await asyncio.sleep(_PAUSE_S)
            else:
                break
        if self._troubled:
            self._troubled = False
            self._manager.well()

    async def _answer(self, read: Callable[[], Awaitable[object]], patience_s: float) -> None:
        asking = asyncio.ensure_future(read())
        try:
            if not (await asyncio.wait({asking}, timeout=patience_s))[0]:
                self._tell("it does not answer")
            # The same question goes on: one that hangs must not be followed by a queue of them.
            await asking
        finally:
            if not asking.done():
                asking.cancel()
                with contextlib.suppress(asyncio.CancelledError, HeadwayError):
                    await asking

    def _tell(self, words: str) -> None:
        if not self._troubled:
            self._troubled = True
            text = f"no sign of life while the store cannot be read: {words}"
            _log.error("%s", text)
            self._manager.trouble(text)
