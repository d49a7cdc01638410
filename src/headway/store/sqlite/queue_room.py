"""How many jobs may wait in the whole store, whoever submitted them.

A submission must not count what waits: the sum of all users' totals costs more with every user,
and a submission is one of the hottest operations. So a number is kept in memory that what waits
cannot be above, and only when that number is above the limit is there a count.
"""

from __future__ import annotations

import threading

from headway.store.limits import WHOLE, QueueFull
from headway.store.sqlite.limits import QueueFullError
from headway.store.sqlite.transaction import Transaction


class QueueRoom:
    """The bound on waiting jobs, for the one process of a state directory that takes jobs in.

    What was given back, or waits for its next attempt, is not refused: it has been accepted.

    Args:
        limit: Jobs that may wait, for whatever reason; None: any number.
    """

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        # Jobs that had not ended when they were counted, and all that were submitted since. Running
        # ones are in it, because they come back to wait when they are retried.
        self._at_most: int | None = None
        self._lock = threading.Lock()

    def check(self, transaction: Transaction, submitted: int) -> None:
        """Refuse a submission, whose jobs are inserted already, that leaves too many waiting.

        Args:
            transaction: The submission's.
            submitted: Its new jobs.

        Raises:
            QueueFullError: too many wait in the store.
        """
        if self._limit is None:
            return
        with self._lock:
            if self._at_most is not None:
                self._at_most += submitted
                if self._at_most <= self._limit:
                    return
            self._count(transaction, submitted, self._limit)

    def forget(self) -> None:
        """Count before the next submission: what was counted has perhaps not been stored."""
        with self._lock:
            self._at_most = None

    def _count(self, transaction: Transaction, submitted: int, limit: int) -> None:
        row = transaction.one("live_totals")
        assert row is not None
        waiting, running = row
        if waiting > limit:
            self._at_most = waiting - submitted + running
            refusal = QueueFull(
                workspace=None, user=WHOLE, limit=limit, waiting=waiting - submitted,
                submitted=submitted,
            )  # fmt: skip
            raise QueueFullError(refusal)
        self._at_most = waiting + running
