"""Whether the store can be written at this moment: what readiness and `why` have to know.

A full disk, a file system that became read-only and a lock that somebody does not give back all
leave the server able to read and answer, while no job can be taken, started or ended.
"""

from __future__ import annotations

import asyncio

from headway.core.clock import Clock, ns_from_s
from headway.core.errors import StoreUnavailable
from headway.store.store import Store

_LIMIT_S = 5.0
_KEEP_S = 2.0
_NAME = "write-probe"


class StoreProbe:
    """Writes a row and tells what came of it; so often at most, whoever asks.

    Args:
        store: Written to.
        clock: Says when the last answer is too old.
        limit_s: A write that takes longer counts as one that does not get through.
        keep_s: How long an answer holds.
    """

    def __init__(
        self, store: Store, clock: Clock, limit_s: float = _LIMIT_S, keep_s: float = _KEEP_S
    ) -> None:
        self._store = store
        self._clock = clock
        self._limit_s = limit_s
        self._keep_ns = ns_from_s(keep_s)
        self._turn = asyncio.Lock()
        self._asked_ns: int | None = None
        self._trouble: str | None = None

    async def trouble(self) -> str | None:
        """Why the store cannot be written; None when it can."""
        async with self._turn:
            now_ns = self._clock.monotonic_ns()
            if self._asked_ns is None or now_ns - self._asked_ns > self._keep_ns:
                self._trouble = await self._try()
                self._asked_ns = self._clock.monotonic_ns()
        return self._trouble

    async def _try(self) -> str | None:
        try:
            async with asyncio.timeout(self._limit_s):
                await self._store.record_period(_NAME, self._clock.now())
        except StoreUnavailable as error:
            return f"the store cannot be written: {error}"
        except TimeoutError:
            return (
                f"the store let no write through within {self._limit_s:g} s: it is overloaded, or"
                " another process holds its lock (a backup, a database shell, a stopped process)"
            )
        return None
