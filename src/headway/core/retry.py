"""When a job that did not succeed is tried again, and after how long."""

from __future__ import annotations

import random

import msgspec


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
