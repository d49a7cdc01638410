"""When a stage must end: pure rules over what has happened, fresh for each stage (trap 39).

Rules are asked after every report and whenever time alone may have decided (trap 32: rules asked
only on request events let a silent server outlive any limit). Anyone may add one: an object with
`evaluate` and `deadline_s`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec

from headway.load.messages import Counters
from headway.load.spec import ErrorRateLimit, GoodputLimit, LimitSpec


class Stop(msgspec.Struct, frozen=True):
    """The decision to end a stage."""

    reason: str
    detail: str
    is_error_rule: bool = False
    """Whether it ends the whole run when the run's `stop_scope` says so: rules about errors, and
    about a target that cannot keep up."""


class StageProgress:
    """What a rule may look at: totals since the stage's start."""

    def __init__(self) -> None:
        self.elapsed_s = 0.0
        self.completed = 0
        self.errored = 0
        self.cancelled = 0
        self.sent = 0
        """Requests that were sent, those in flight included."""
        self.in_flight = 0
        self.errors_in_row = 0
        """Errors since the last success; batches of several workers follow one another."""
        self.most_errors_in_row = 0
        self.latest: Counters = Counters()
        """What was added last; empty when time alone passed."""

    def add(self, elapsed_s: float, counters: Counters) -> None:
        """Take in a report."""
        self.elapsed_s = elapsed_s
        self.latest = counters
        self.completed += counters.completed
        self.errored += counters.errored
        self.cancelled += counters.cancelled
        if counters.completed:
            joined = self.errors_in_row + counters.leading_errors
            self.errors_in_row = counters.trailing_errors
        else:
            joined = self.errors_in_row = self.errors_in_row + counters.errored
        self.most_errors_in_row = max(self.most_errors_in_row, joined, counters.longest_errors)

    def passes(self, elapsed_s: float) -> None:
        """Time passed and nothing was reported."""
        self.elapsed_s = elapsed_s
        self.latest = Counters()


class StopRule(Protocol):
    """Decides from a stage's progress whether it must end."""

    def evaluate(self, progress: StageProgress) -> Stop | None:
        """Called after each report and at `deadline_s`."""
        ...

    def deadline_s(self) -> float | None:
        """When, in seconds since the stage's start, time alone may decide; None: never."""
        ...


class MaxSeconds:
    """Ends sending after a time."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s

    def evaluate(self, progress: StageProgress) -> Stop | None:
        if progress.elapsed_s < self._limit_s:
            return None
        # Rounded: the stages of a search have lengths of their own, down to the nanosecond.
        return Stop("max_seconds", f"{round(self._limit_s, 3):g} s have passed")

    def deadline_s(self) -> float | None:
        return self._limit_s


class MaxErrors:
    """Ends a stage after a number of failed requests."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def evaluate(self, progress: StageProgress) -> Stop | None:
        if progress.errored < self._limit:
            return None
        detail = f"{progress.errored} requests failed; the limit is {self._limit}"
        return Stop("max_errors", detail, is_error_rule=True)

    def deadline_s(self) -> float | None:
        return None


class MaxConsecutiveErrors:
    """Ends a stage when requests fail one after another."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def evaluate(self, progress: StageProgress) -> Stop | None:
        if progress.most_errors_in_row < self._limit:
            return None
        detail = f"{progress.most_errors_in_row} requests in a row failed"
        return Stop("max_consecutive_errors", detail, is_error_rule=True)

    def deadline_s(self) -> float | None:
        return None


class MaxErrorRate:
    """Ends a stage when too large a share of the requests that ended lately failed."""

    def __init__(self, limit: ErrorRateLimit) -> None:
        self._limit = limit
        self._window = _Window(limit.window_s)

    def evaluate(self, progress: StageProgress) -> Stop | None:
        latest = progress.latest
        ended, errored = self._window.add(
            progress.elapsed_s, latest.completed + latest.errored, latest.errored
        )
        if ended < self._limit.minimum_requests or errored / ended < self._limit.rate:
            return None
        detail = f"{errored} of {ended} requests failed within {self._limit.window_s:g} s"
        return Stop("max_error_rate", detail, is_error_rule=True)

    def deadline_s(self) -> float | None:
        return None


class MinGoodput:
    """Ends a stage when too few of the requests that ended lately met every objective."""

    def __init__(self, limit: GoodputLimit) -> None:
        self._limit = limit
        self._window = _Window(limit.window_s)

    def evaluate(self, progress: StageProgress) -> Stop | None:
        latest = progress.latest
        ended, good = self._window.add(
            progress.elapsed_s, latest.completed + latest.errored, latest.good
        )
        if ended < self._limit.minimum_requests or good / ended >= self._limit.share:
            return None
        detail = (
            f"{good} of {ended} requests met the objectives within {self._limit.window_s:g} s; "
            f"the limit is {self._limit.share:.0%}"
        )
        return Stop("min_goodput", detail, is_error_rule=True)

    def deadline_s(self) -> float | None:
        return None


class _Window:
    """Requests that ended lately, and how many of them are of a kind."""

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._reports: deque[tuple[float, int, int]] = deque()
        self._ended = 0
        self._of_kind = 0

    def add(self, elapsed_s: float, ended: int, of_kind: int) -> tuple[int, int]:
        """Take in a report, forget the old ones, and return both totals."""
        if ended:
            self._reports.append((elapsed_s, ended, of_kind))
            self._ended += ended
            self._of_kind += of_kind
        while self._reports and self._reports[0][0] < elapsed_s - self._window_s:
            _, gone, gone_of_kind = self._reports.popleft()
            self._ended -= gone
            self._of_kind -= gone_of_kind
        return self._ended, self._of_kind


RuleFactory = Callable[[], StopRule]
"""Makes a rule anew for each stage, so that no stage inherits another's counts."""


class StopRules:
    """The rules of one stage, asked together; the first that decides, decides."""

    def __init__(self, rules: Iterable[StopRule]) -> None:
        self._rules: Sequence[StopRule] = tuple(rules)

    def evaluate(self, progress: StageProgress) -> Stop | None:
        """Ask every rule: each keeps its own state, so none may be left out."""
        stops = [rule.evaluate(progress) for rule in self._rules]
        return next((stop for stop in stops if stop is not None), None)

    def next_deadline_s(self, elapsed_s: float) -> float | None:
        """The earliest time still to come at which time alone may decide."""
        deadlines = [rule.deadline_s() for rule in self._rules]
        return min((d for d in deadlines if d is not None and d > elapsed_s), default=None)


def rules_for(
    limits: LimitSpec, max_seconds: float | None, added: Iterable[RuleFactory] = ()
) -> StopRules:
    """The rules of a stage: those of the run's limits, its own duration, and added ones."""
    rules: list[StopRule] = [factory() for factory in added]
    if limits.max_errors is not None:
        rules.append(MaxErrors(limits.max_errors))
    if limits.max_consecutive_errors is not None:
        rules.append(MaxConsecutiveErrors(limits.max_consecutive_errors))
    if limits.max_error_rate is not None:
        rules.append(MaxErrorRate(limits.max_error_rate))
    if limits.min_goodput is not None:
        rules.append(MinGoodput(limits.min_goodput))
    if max_seconds is not None:
        rules.append(MaxSeconds(max_seconds))
    return StopRules(rules)
