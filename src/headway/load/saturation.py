"""The stop rule for an open loop whose target falls behind what is sent.

A target that keeps up has, apart from chance, as many requests in flight at the end of a while as
at its beginning: what is sent is also ended. One that does not keep up collects them: over a window
in which `s` requests were sent, of which the target ends the share `m`, the number in flight grows
by `(1 - m) * s`, and each request takes `(1 - m)` seconds longer than one sent a second before it.
The stage is *saturated* when, over a window,

- requests in flight grew by more than `growth_share` of those sent, in each half of the window,
- and by more than chance explains: three standard deviations of the difference between two Poisson
  counts, `3 * sqrt(2 * s)`,
- after the part of that growth that a rising rate asks for is taken off (Little's law: in flight =
  rate x latency), where the load profile changes its rate.

A stage with a cap on requests in flight collects them before the cap instead: there, with the cap
reached, the lateness of what is sent must grow by more than `growth_share` of the time that passes.

Windows of one, two and four times `window_s` are looked at, so that a slight overload is found too,
later. The start of a stage is left out until requests have had twice the time that the first ones
took: until then the number in flight rises in any case.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from headway.core.clock import NS_PER_S
from headway.load.histogram import Histogram
from headway.load.spec import SaturationLimit
from headway.load.stop_rules import StageProgress, Stop

_SAMPLES_A_WINDOW = 20
_WINDOWS = (1, 2, 4)
_FIRST_ENDED = 20
"""Requests whose latencies say how long a request takes before the target can be saturated."""
_CHANCE = 3.0
_CAP_REACHED = 0.9


class _Sample(NamedTuple):
    at_s: float
    sent: int
    in_flight: int
    lateness_s: float | None
    latency: Mapping[int, int]


class Saturation:
    """Ends an open-loop stage when its target falls behind.

    Args:
        limit: What counts as falling behind.
        cap: Most requests in flight; None: no cap.
        rate_changes: Whether the load profile's own rate changes over the stage.
    """

    def __init__(
        self, limit: SaturationLimit, cap: int | None = None, rate_changes: bool = False
    ) -> None:
        self._limit = limit
        self._cap = cap
        self._rate_changes = rate_changes
        self._every_s = limit.window_s / _SAMPLES_A_WINDOW
        self._samples: deque[_Sample] = deque(maxlen=_SAMPLES_A_WINDOW * max(_WINDOWS) + 1)
        self._first = Histogram()
        self._first_ended = 0
        self._begin_s: float | None = None
        self._lateness = Histogram()
        self._latency: dict[int, int] = {}

    def evaluate(self, progress: StageProgress) -> Stop | None:
        latest = progress.latest
        self._lateness.merge(latest.lateness)
        for bucket, count in latest.latency.items():
            self._latency[bucket] = self._latency.get(bucket, 0) + count
        if not self._has_begun(progress) or not self._is_due(progress.elapsed_s):
            return None
        self._take(progress)
        for windows in _WINDOWS:
            samples = self._last(windows)
            if samples is not None and (detail := self._finding(samples)) is not None:
                return Stop("saturated", detail, is_error_rule=True)
        return None

    def deadline_s(self) -> float | None:
        return None

    def _has_begun(self, progress: StageProgress) -> bool:
        if self._begin_s is None:
            self._first.merge(progress.latest.latency)
            self._first_ended += sum(progress.latest.latency.values())
            if self._first_ended < _FIRST_ENDED:
                return False
            self._begin_s = 2 * (self._first.quantile(0.5) or 0.0) / NS_PER_S
        return progress.elapsed_s >= self._begin_s

    def _is_due(self, elapsed_s: float) -> bool:
        return not self._samples or elapsed_s - self._samples[-1].at_s >= self._every_s

    def _take(self, progress: StageProgress) -> None:
        lateness_ns = self._lateness.quantile(0.5)
        self._samples.append(
            _Sample(
                progress.elapsed_s,
                progress.sent,
                progress.in_flight,
                None if lateness_ns is None else lateness_ns / NS_PER_S,
                self._latency,
            )
        )
        self._lateness, self._latency = Histogram(), {}

    def _last(self, windows: int) -> tuple[_Sample, _Sample, _Sample] | None:
        """First, middle and last sample of the newest window of this size; None: not yet seen."""
        steps = windows * _SAMPLES_A_WINDOW
        if len(self._samples) <= steps:
            return None
        return self._samples[-1 - steps], self._samples[-1 - steps // 2], self._samples[-1]

    def _finding(self, samples: tuple[_Sample, _Sample, _Sample]) -> str | None:
        first, _, last = samples
        if self._cap is not None and last.in_flight >= _CAP_REACHED * self._cap:
            return self._finding_at_cap(samples)
        sent = last.sent - first.sent
        growth = last.in_flight - first.in_flight - self._explained(samples)
        if growth <= _CHANCE * math.sqrt(2 * sent) or not all(
            self._outgrows(one, other) for one, other in pairwise(samples)
        ):
            return None
        ended_per_s = (sent - (last.in_flight - first.in_flight)) / (last.at_s - first.at_s)
        return (
            f"requests in flight grew from {first.in_flight} to {last.in_flight} while {sent} were "
            f"sent within {last.at_s - first.at_s:.0f} s: the target ends about {ended_per_s:.3g}/s"
        )

    def _outgrows(self, first: _Sample, last: _Sample) -> bool:
        grown = last.in_flight - first.in_flight
        return grown > self._limit.growth_share * (last.sent - first.sent)

    def _finding_at_cap(self, samples: tuple[_Sample, _Sample, _Sample]) -> str | None:
        for first, last in pairwise(samples):
            if first.lateness_s is None or last.lateness_s is None:
                return None
            grown_s = last.lateness_s - first.lateness_s
            if grown_s <= self._limit.growth_share * (last.at_s - first.at_s):
                return None
        return (
            f"with {samples[-1].in_flight} requests in flight, as many as the cap allows, lateness "
            f"grew from {samples[0].lateness_s:.3g} s to {samples[-1].lateness_s:.3g} s within "
            f"{samples[-1].at_s - samples[0].at_s:.0f} s"
        )

    def _explained(self, samples: tuple[_Sample, _Sample, _Sample]) -> float:
        """What a changing rate adds to the number in flight while latency stays as it is."""
        if not self._rate_changes:
            return 0.0
        before, after = (
            (last.sent - first.sent) / (last.at_s - first.at_s) for first, last in pairwise(samples)
        )
        latency = Histogram()
        for sample in self._samples:
            if samples[0].at_s < sample.at_s:
                latency.merge(sample.latency)
        # The rates are those of the halves' middles, half a window apart.
        return 2 * (after - before) * (latency.quantile(0.5) or 0.0) / NS_PER_S
