"""How many jobs may wait in the whole store, and with how many bytes, whoever submitted them.

A submission must not count what waits: the sum of all users' totals costs more with every user,
and a submission is one of the hottest operations. So an amount is kept in memory that what waits
cannot be above, and only when that amount is above a limit is there a count.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

from headway.store.limits import WHOLE, QueueFull, QueueLimits
from headway.store.sqlite.limits import QueueFullError
from headway.store.sqlite.transaction import Transaction


class Amount(NamedTuple):
    """Jobs, and the bytes that were submitted with them."""

    jobs: int
    size_bytes: int

    def plus(self, other: Amount) -> Amount:
        return Amount(self.jobs + other.jobs, self.size_bytes + other.size_bytes)

    def minus(self, other: Amount) -> Amount:
        return Amount(self.jobs - other.jobs, self.size_bytes - other.size_bytes)


class QueueRoom:
    """The bound on all that waits, for the one process of a state directory that takes jobs in.

    What was given back, or waits for its next attempt, is not refused: it has been accepted.

    Args:
        limits: How much may wait, for whatever reason.
    """

    def __init__(self, limits: QueueLimits) -> None:
        self._limits = limits
        # What had not ended when it was counted, and all that was submitted since. Running jobs are
        # in it, because they come back to wait when they are retried.
        self._at_most: Amount | None = None
        self._lock = threading.Lock()

    def check(self, transaction: Transaction, submitted: Amount) -> None:
        """Refuse a submission, whose jobs are inserted already, that leaves too much waiting.

        Args:
            transaction: The submission's.
            submitted: Its new jobs.

        Raises:
            QueueFullError: too much waits in the store.
        """
        if self._limits == QueueLimits():
            return
        with self._lock:
            if self._at_most is not None:
                self._at_most = self._at_most.plus(submitted)
                if self._over(self._at_most, submitted) is None:
                    return
            self._count(transaction, submitted)

    def forget(self) -> None:
        """Count before the next submission: what was counted has perhaps not been stored."""
        with self._lock:
            self._at_most = None

    def _count(self, transaction: Transaction, submitted: Amount) -> None:
        row = transaction.one("live_totals")
        assert row is not None
        waiting, running = Amount(*row[:2]), Amount(*row[2:])
        self._at_most = waiting.plus(running)
        refusal = self._over(waiting, submitted)
        if refusal is not None:
            self._at_most = self._at_most.minus(submitted)
            raise QueueFullError(refusal)

    def _over(self, waiting: Amount, submitted: Amount) -> QueueFull | None:
        """What is said when `waiting`, with what is submitted, is above a limit."""
        limits = (self._limits.jobs, self._limits.size_bytes)
        for unit, limit, all_of_it, of_these in zip(
            ("jobs", "bytes"), limits, waiting, submitted, strict=True
        ):
            if limit is not None and all_of_it > limit:
                return QueueFull(
                    workspace=None, user=WHOLE, limit=limit, waiting=all_of_it - of_these,
                    submitted=of_these, unit=unit,
                )  # fmt: skip
        return None
