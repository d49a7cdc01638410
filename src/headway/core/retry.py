"""When a job that did not succeed is tried again, and after how long."""

from __future__ import annotations

import random
from enum import Enum

import msgspec


class Verdict(Enum):
    """What a policy says after an attempt that did not succeed."""

    AGAIN = "again"
    FINAL = "final"
    """This kind of failure is not retried."""
    EXHAUSTED = "exhausted"
    """It would be, but no attempt is left."""
    QUARANTINED = "quarantined"
    """It took its process down too often."""


class RetryPolicy(msgspec.Struct, frozen=True, omit_defaults=True):
    """A job's retry rules, fixed when it is submitted.

    Attributes:
        max_attempts: Attempts that count, >= 1; drained attempts do not count.
        retryable: Whether an attempt whose process died may be run again. An operation with side
            effects that must not happen twice says no.
        retry_on: Names of exception classes that are retried; empty means none but `Retry`.
        backoff_s: Delay after the first failed attempt.
        backoff_factor: Each further delay is this many times longer.
        backoff_max_s: No delay is longer.
        jitter: Fraction of the delay drawn at random, 0..1, so that jobs that failed together do
            not come back together.
        quarantine_after: Attempts that may take their process down before the job is set aside.
    """

    max_attempts: int = 1
    retryable: bool = False
    retry_on: tuple[str, ...] = ()
    backoff_s: float = 1.0
    backoff_factor: float = 2.0
    backoff_max_s: float = 300.0
    jitter: float = 0.2
    quarantine_after: int = 3

    def delay_s(self, failures: int, rng: random.Random) -> float:
        """Seconds to wait before the next attempt.

        Args:
            failures: Attempts that have failed so far, >= 1.
            rng: Source of the jitter.
        """
        # The exponent is bounded: 2.0 ** 1100 overflows, and the cap is reached long before.
        grown = self.backoff_s * self.backoff_factor ** min(failures - 1, 64)
        delay = min(grown, self.backoff_max_s)
        return delay * (1 - self.jitter * rng.random())

    def crash_delay_s(self, crashes: int, rng: random.Random) -> float:
        """Seconds to wait after a crash: none after the first, which is rarely the job's fault."""
        return 0.0 if crashes <= 1 else self.delay_s(crashes - 1, rng)

    def after_retry_asked(self, attempts: int) -> Verdict:
        """The operation raised `Retry`.

        Args:
            attempts: Attempts so far that count, this one included.
        """
        return Verdict.AGAIN if attempts < self.max_attempts else Verdict.EXHAUSTED

    def after_error(self, attempts: int, named: bool) -> Verdict:
        """The operation raised.

        Args:
            attempts: As above.
            named: Whether `retry_on` names the error; only the process that has the classes knows.
        """
        return self.after_retry_asked(attempts) if named else Verdict.FINAL

    def after_crash(self, attempts: int, crashes: int) -> Verdict:
        """The attempt's process, or the one that kept its lease, died.

        Args:
            attempts: As above.
            crashes: Crashes so far, this one included.
        """
        if not self.retryable:
            return Verdict.FINAL
        if crashes >= self.quarantine_after:
            return Verdict.QUARANTINED
        return self.after_retry_asked(attempts)
