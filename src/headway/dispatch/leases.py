"""The leases of the attempts that this process runs; renewed here, never by the job (trap 22)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from headway.core.clock import Clock, ns_from_s
from headway.store.attempts import Claim, ClaimedJob, Release
from headway.store.store import Store

_log = logging.getLogger(__name__)


class Lease:
    """The right to write for one attempt.

    Args:
        claimed: The claim, with the end of its first lease.
        on_lost: Called once, when a renewal was refused.
        clock: Tells whether the lease is over.
    """

    def __init__(self, claimed: ClaimedJob, on_lost: Callable[[], None], clock: Clock) -> None:
        self.claim = claimed.claim
        self.lost = False
        self.ending = False
        self._until_ns = claimed.lease_until_ns
        self._on_lost = on_lost
        self._clock = clock

    def holds(self) -> bool:
        """Whether this attempt is surely the current one.

        False also when this process slept past its lease and does not know yet what happened
        meanwhile (SIGSTOP, a suspended machine): then nothing may be written (J5).
        """
        return not self.lost and self._clock.monotonic_ns() < self._until_ns

    def end(self) -> None:
        """The attempt's end is on its way to the store: a renewal refused from now on is no loss.

        Renewals go on all the same, because the store may be unavailable for a while.
        """
        self.ending = True

    def renewed(self, until_ns: int) -> None:
        self._until_ns = until_ns

    def lose(self) -> None:
        if not self.lost:
            self.lost = True
            self._on_lost()


class LeaseKeeper:
    """Renews every lease of one owner.

    Args:
        store: Keeps the leases.
        owner: Whose they are.
        clock: Monotonic time.
        lease_s: Length of a lease; `renew` must be called several times within it.
    """

    def __init__(self, store: Store, owner: str, clock: Clock, lease_s: float) -> None:
        self._store = store
        self._owner = owner
        self._clock = clock
        self._leases: dict[Claim, Lease] = {}
        self._strays: set[Claim] = set()
        self.lease_s = lease_s

    def hold(self, claimed: ClaimedJob, on_lost: Callable[[], None]) -> Lease:
        """Keep a new claim's lease alive until `drop`."""
        lease = Lease(claimed, on_lost, self._clock)
        self._leases[claimed.claim] = lease
        return lease

    def drop(self, claim: Claim) -> None:
        self._leases.pop(claim, None)

    async def renew(self) -> None:
        """Renew all leases; those that are refused are lost."""
        if self._leases:
            # The clock is read before the store is asked, so that what is believed here ends
            # before what is stored there.
            asked_ns = self._clock.monotonic_ns()
            leases = dict(self._leases)
            refused = set(await self._store.renew(list(leases), self.lease_s))
            for claim, lease in leases.items():
                if claim in refused:
                    self._refused(claim, lease)
                else:
                    lease.renewed(asked_ns + ns_from_s(self.lease_s))
        await self._give_strays_back()

    def _refused(self, claim: Claim, lease: Lease) -> None:
        self._leases.pop(claim, None)
        if not lease.ending:
            _log.warning("job %s: attempt %d lost its lease", claim.job_id, claim.attempt)
            lease.lose()

    async def _give_strays_back(self) -> None:
        """Release claims that were committed while their answer was lost (a timeout, a bug).

        Only what two turns in a row found: an answer may just be on its way.
        """
        stored = set(await self._store.running(self._owner))
        unknown = stored - self._leases.keys()
        for claim in unknown & self._strays:
            _log.warning("job %s: attempt %d was claimed but not begun", *_named(claim))
            await self._store.end_attempt(claim, Release(reason="its claim's answer was lost"))
        self._strays = unknown - self._strays


def _named(claim: Claim) -> tuple[str, int]:
    return claim.job_id, claim.attempt
