"""A duty that only one process may have at a time, held by lease (J19, trap 23)."""

from __future__ import annotations

from headway.dispatch.owner import is_dead
from headway.store.store import Store


class NamedLease:
    """Taken by the first that asks; passes on when its holder dies or goes silent.

    Args:
        store: Keeps it.
        name: Of the duty.
        owner: Who asks.
        lease_s: How long it lasts without `take`.
    """

    def __init__(self, store: Store, name: str, owner: str, lease_s: float) -> None:
        self._store = store
        self._owner = owner
        self.name = name
        self.lease_s = lease_s

    async def take(self) -> bool:
        """Take or renew it; False while another living process has it."""
        holder = await self._store.take_lease(self.name, self._owner, self.lease_s)
        if holder != self._owner and is_dead(holder):
            holder = await self._store.take_lease(
                self.name, self._owner, self.lease_s, dead_owners=(holder,)
            )
        return holder == self._owner

    async def give_up(self) -> None:
        """Let the next that asks have it at once."""
        await self._store.take_lease(self.name, self._owner, lease_s=0.0)
