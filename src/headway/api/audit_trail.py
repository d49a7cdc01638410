"""Notes who was denied what, in the audit log: the first time at once, repetitions as a number."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass

from headway.access.accounts import DENIED, Act, AuditEvent
from headway.access.identity import Identity
from headway.core.errors import StoreUnavailable
from headway.store.accounts import AccountStore

_LOG = logging.getLogger("headway.api.audit")

WRITE_S = 10.0
MAX_ROWS = 50
"""Lines of one doer's denials written each time; what is more is counted in one line. Of each doer
apart, all who have shown no token being one: nobody hides behind the noise that others make."""
NOBODY = "-"


@dataclass(frozen=True)
class Denial:
    """A refused call; equal ones are counted together."""

    act: Act
    call: str
    status: int
    workspace: str | None


def act_of(identity: Identity | None, address: str | None) -> Act:
    """The doer of something, for the audit log."""
    if identity is None:
        return Act(user=NOBODY, via="none", address=address)
    return Act(
        user=identity.user, via=identity.via, token_id=identity.token_id, address=address or None
    )


class AuditTrail:
    """Gathers denials in bounded memory and writes them a few at a time.

    Args:
        accounts: Has the audit log.
    """

    def __init__(self, accounts: AccountStore) -> None:
        self._accounts = accounts
        self._denials: Counter[Denial] = Counter()
        self._rows: Counter[str] = Counter()
        self._beyond: Counter[str] = Counter()

    def denied(
        self, identity: Identity | None, address: str, call: str, status: int, workspace: str | None
    ) -> None:
        """Count a denial; it is written soon."""
        denial = Denial(act_of(identity, address), call, status, workspace)
        doer = denial.act.user
        if denial not in self._denials:
            if self._rows[doer] >= MAX_ROWS:
                self._beyond[doer] += 1
                return
            self._rows[doer] += 1
        self._denials[denial] += 1

    async def write(self) -> None:
        """Write what was counted."""
        events = [_event(denial, count) for denial, count in self._denials.items()]
        for doer, count in self._beyond.items():
            rest = Denial(Act(user=doer, via="none"), "others, not told apart", 0, None)
            events.append(_event(rest, count))
        if not events:
            return
        self._denials, self._rows, self._beyond = Counter(), Counter(), Counter()
        await self._accounts.audit(events)

    async def run(self) -> None:
        """Write every few seconds, until cancelled; then once more."""
        try:
            while True:
                await asyncio.sleep(WRITE_S)
                try:
                    await self.write()
                except StoreUnavailable as error:
                    _LOG.warning("denied calls were not noted: %s", error)
        finally:
            await self.write()


def _event(denial: Denial, count: int) -> AuditEvent:
    return AuditEvent(
        act=denial.act,
        action=DENIED,
        subject=denial.call,
        workspace=denial.workspace,
        detail={"status": str(denial.status)},
        count=count,
    )
