"""Removes old lines of the audit log, and tokens that have long been good for nothing."""

from __future__ import annotations

from datetime import timedelta

from headway.core.clock import Clock
from headway.store.accounts import AccountStore

AUDIT_KEPT = timedelta(days=400)
"""More than a year, so that a yearly review sees all of it."""
MAX_DENIED = 20_000
DEAD_TOKENS_KEPT = timedelta(days=90)
_BATCH = 500
"""Rows removed in one commit: other writers wait for it."""


class AccessRetention:
    """A duty of the server itself.

    Args:
        accounts: Has the log and the tokens.
        clock: Age counts from now.
    """

    def __init__(self, accounts: AccountStore, clock: Clock) -> None:
        self._accounts = accounts
        self._clock = clock

    async def run(self) -> None:
        """Remove, in batches, all that may go now."""
        now = self._clock.now()
        while await self._accounts.trim_audit(now - AUDIT_KEPT, MAX_DENIED, _BATCH):
            pass
        while await self._accounts.remove_dead_tokens(now - DEAD_TOKENS_KEPT, _BATCH):
            pass
