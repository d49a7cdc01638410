"""A duty that is done again and again: when a bell rings, and now and then in case none did."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from headway.core.errors import StoreUnavailable
from headway.dispatch.doorbell import Bell

_log = logging.getLogger(__name__)

_AFTER_FAILURE_S = 1.0


class Loop:
    """Runs `step` until stopped.

    A store that is unavailable is waited for; any other error ends the loop and is raised by
    `run`: a worker that is half alive is worse than one that is started anew.

    Args:
        name: For log lines and task names.
        step: One turn; it may return the seconds until it wants the next.
        interval_s: At most this long between two turns.
        bell: Wakes the loop at once.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], Awaitable[float | None]],
        interval_s: float,
        bell: Bell,
    ) -> None:
        self.name = name
        self._step = step
        self._interval_s = interval_s
        self._bell = bell
        self._stopping = False

    async def run(self) -> None:
        """Work until `stop`."""
        while not self._stopping:
            wait_s = await self._turn()
            if not self._stopping:
                await self._bell.wait(wait_s)
        self._bell.close()

    def wake(self) -> None:
        """Take the next turn now."""
        self._bell.ring()

    def stop(self) -> None:
        """End after the turn that is on. Calling it twice is fine."""
        self._stopping = True
        self._bell.ring()

    async def _turn(self) -> float:
        try:
            wanted_s = await self._step()
        except StoreUnavailable as error:
            _log.warning("%s waits for the store: %s", self.name, error)
            return _AFTER_FAILURE_S
        return self._interval_s if wanted_s is None else min(wanted_s, self._interval_s)


async def run_all(loops: list[Loop]) -> None:
    """Run loops until each has been stopped; the first error stops them all and is raised."""
    async with asyncio.TaskGroup() as group:
        for loop in loops:
            group.create_task(loop.run(), name=f"headway-{loop.name}")
