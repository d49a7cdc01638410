"""How fast a user may ask and a workspace may submit, and how urgent a job may be (J25)."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence

from headway.access.identity import Identity
from headway.api.fair_use_settings import DEFAULT_CEILINGS, FairUseSettings
from headway.api.problems import Refusal
from headway.core.clock import Clock, s_from_ns
from headway.store.submissions import NewJob

__all__ = ["MAX_BUCKETS", "Buckets", "FairUse", "FairUseSettings"]

MAX_BUCKETS = 10_000
"""Buckets of one kind. The one that was used longest ago goes first; it is full again by then."""
_BURST_S = 2.0
"""A bucket holds what its rate gives in so many seconds, so that a page with its pieces passes."""


class Buckets:
    """A token bucket for each name, in bounded memory.

    What is taken may be more than is there: the bucket then owes it, and gives nothing until it
    has been paid back. So a large batch passes, and waits afterwards.

    Args:
        rate_per_s: Tokens that flow into each bucket.
        burst: Tokens that it holds.
        clock: Measures the flow.
        most: Buckets that are kept.
    """

    def __init__(
        self, rate_per_s: float, burst: float, clock: Clock, most: int = MAX_BUCKETS
    ) -> None:
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._clock = clock
        self._most = most
        self._buckets: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, name: str, count: float = 1.0) -> float:
        """Take `count` tokens; 0 when they were taken, else the seconds until it may be tried."""
        now_ns = self._clock.monotonic_ns()
        left, then_ns = self._buckets.get(name, (self._burst, now_ns))
        left = min(self._burst, left + s_from_ns(now_ns - then_ns) * self._rate_per_s)
        wait_s = 0.0 if left >= min(count, 1.0) else (min(count, 1.0) - left) / self._rate_per_s
        if wait_s == 0.0:
            left -= count
        self._buckets[name] = (left, now_ns)
        self._buckets.move_to_end(name)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return wait_s


class FairUse:
    """Refuses who is too fast or asks for too much.

    Args:
        settings: See `FairUseSettings`.
        clock: Measures rates.
    """

    def __init__(self, settings: FairUseSettings, clock: Clock) -> None:
        self._settings = settings
        self._requests = self._submissions = None
        if settings.requests_per_s is not None:
            rate = settings.requests_per_s
            self._requests = Buckets(rate, max(1.0, _BURST_S * rate), clock)
        if settings.submissions_per_min is not None:
            per_min = settings.submissions_per_min
            self._submissions = Buckets(per_min / 60, max(1.0, per_min / 60 * _BURST_S), clock)

    def check_request(self, caller: Identity) -> None:
        """Count a request of `caller`.

        Raises:
            Refusal: 429; there were too many.
        """
        if self._requests is None or caller.via == "local":
            return
        wait_s = self._requests.take(caller.user)
        if wait_s > 0:
            rate = self._settings.requests_per_s
            _refuse(f"{caller.user} may send {rate:g} requests a second", wait_s)

    def check_submission(self, jobs: Sequence[NewJob], caller: Identity | None) -> None:
        """Count the jobs that are about to be submitted.

        Raises:
            Refusal: 429; the workspace has submitted too many.
        """
        if self._submissions is None or caller is None or caller.via == "local" or not jobs:
            return
        workspace = jobs[0].workspace
        wait_s = self._submissions.take(workspace, len(jobs))
        if wait_s > 0:
            rate = self._settings.submissions_per_min
            _refuse(f"workspace {workspace!r} may submit {rate:g} jobs a minute", wait_s)

    def ceiling(self, caller: Identity) -> int | None:
        """The highest priority that `caller` may ask for; None: any."""
        if caller.administrator:
            return None
        return self._settings.ceilings.get(caller.role, DEFAULT_CEILINGS.get(caller.role, 0))


def _refuse(rule: str, wait_s: float) -> None:
    seconds = math.ceil(wait_s)
    detail = f"{rule}; send this again in {seconds} s"
    raise Refusal(429, detail, headers={"retry-after": str(seconds)})
