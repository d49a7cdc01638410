"""Limits and locks in SQLite: implements `headway.store.limits.LimitStore`."""

from __future__ import annotations

from headway.store.limits import Limit, Lock, Use
from headway.store.sqlite import limits, locks
from headway.store.sqlite.running import Run


class SqliteLimits:
    """The limits and locks of one database.

    Args:
        write: Runs what changes something.
        read: Runs quick reads.
        scan: Runs reads that may take longer.
    """

    def __init__(self, write: Run, read: Run, scan: Run) -> None:
        self._write = write
        self._read = read
        self._scan = scan

    async def all(self) -> list[Limit]:
        return await self._read(limits.all_limits)

    async def set(self, limit: Limit) -> None:
        await self._write(limits.set_limit, limit)

    async def use(self, workspace: str | None = None) -> list[Use]:
        return await self._scan(limits.use, workspace)

    async def locks(self) -> list[Lock]:
        return await self._read(locks.all_locks)

    async def set_lock(self, lock: Lock) -> None:
        await self._write(locks.set_lock, lock)

    async def remove_lock(self, name: str) -> bool:
        return await self._write(locks.remove_lock, name)
