"""Why a server should be given no work, and why jobs that it has do not start."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from headway.api.store_probe import StoreProbe


class NotReady(StrEnum):
    """What the server's own processes stand in the way with."""

    STARTING = "the worker process is starting"
    STOPPING = "the server is stopping"


class Readiness:
    """Whether jobs can be taken and started now.

    Args:
        not_ready: What the server's processes say; None when they are ready.
        probe: Asked when they are.
    """

    def __init__(self, not_ready: Callable[[], NotReady | None], probe: StoreProbe) -> None:
        self._not_ready = not_ready
        self._probe = probe

    async def obstacle(self) -> str | None:
        """A sentence that says what is in the way; None when nothing is."""
        reason = self._not_ready()
        return await self._probe.trouble() if reason is None else reason.value
