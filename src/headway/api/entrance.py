"""The entrance of the server: who comes in, who has to leave, and what is noted of both."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from headway.api.audit_trail import AuditTrail
from headway.api.authenticator import Extract, TokenAuthenticator, bearer
from headway.api.gate import Gate
from headway.core.clock import Clock, ns_from_s
from headway.core.errors import StoreUnavailable
from headway.dispatch.doorbell import ACCESS, Doorbell
from headway.store.accounts import AccountStore

_NOTE_USE_S = 60.0


class Entrance:
    """Authentication, the gate and the audit trail, put together.

    Args:
        accounts: Users, workspaces, tokens and the audit log.
        doorbell: Rings when accounts change, in whatever process.
        clock: Decides about expiry.
        heartbeat_s: How late a change is noticed whose ring was lost.
        extracts: Where in a request tokens are looked for.
    """

    def __init__(
        self,
        accounts: AccountStore,
        doorbell: Doorbell,
        clock: Clock,
        heartbeat_s: float,
        extracts: Sequence[Extract] = (bearer,),
    ) -> None:
        self.accounts = accounts
        self.authenticator = TokenAuthenticator(accounts, clock, extracts=extracts)
        self.trail = AuditTrail(accounts)
        self.gate = Gate(self.authenticator, self.trail.denied)
        self._doorbell = doorbell
        self._clock = clock
        self._heartbeat_s = heartbeat_s

    def changed(self) -> None:
        """Accounts were changed by this process: nothing that was known counts any more."""
        self.authenticator.forget()
        self._doorbell.ring(ACCESS)

    async def note_use(self) -> None:
        """Write down which tokens were used since the last time."""
        used = self.authenticator.take_used()
        if used:
            # Lost when the store is away: the next use tells it again.
            with contextlib.suppress(StoreUnavailable):
                await self.accounts.note_use(used)

    async def run(self) -> None:
        """End what must not go on and note what was seen, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.trail.run())
            group.create_task(self._watch())

    async def _watch(self) -> None:
        note_at_ns = self._clock.monotonic_ns() + ns_from_s(_NOTE_USE_S)
        try:
            with self._doorbell.listen(ACCESS) as bell:
                while True:
                    if await bell.wait(self._heartbeat_s):
                        self.authenticator.forget()
                    await self.gate.look_again()
                    if self._clock.monotonic_ns() >= note_at_ns:
                        note_at_ns = self._clock.monotonic_ns() + ns_from_s(_NOTE_USE_S)
                        await self.note_use()
        finally:
            await self.note_use()
