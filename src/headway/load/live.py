"""The counters of a running stage, kept from the workers' reports without decoding a record."""

from __future__ import annotations

from collections import deque

from headway.core.clock import NS_PER_S
from headway.load.histogram import Histogram
from headway.load.messages import Counters
from headway.load.observer import LiveSnapshot
from headway.load.stages import StagePlan

_RATE_WINDOW_S = 3.0
_MOST_MESSAGES = 100


class LiveCounters:
    """Totals, recent rates and rough percentiles of one stage."""

    def __init__(self, stage: int, stages: int, plan: StagePlan) -> None:
        self._stage = stage
        self._stages = stages
        self._plan = plan
        self._in_flight: dict[int, int] = {}
        self._ended_sent = 0
        self._completed = 0
        self._errored = 0
        self._cancelled = 0
        self._ttft = Histogram()
        self._latency = Histogram()
        self._lateness = Histogram()
        self._errors: dict[str, int] = {}
        self._history: deque[tuple[float, int, int]] = deque()

    def add(self, worker: int, in_flight: int, counters: Counters) -> None:
        """Take in a report."""
        self._in_flight[worker] = in_flight
        self.own(counters)

    def own(self, counters: Counters) -> None:
        """Take in requests without a worker."""
        self._ended_sent += counters.sent
        self._completed += counters.completed
        self._errored += counters.errored
        self._cancelled += counters.cancelled
        self._ttft.merge(counters.ttft)
        self._latency.merge(counters.latency)
        self._lateness.merge(counters.lateness)
        for message, count in counters.error_messages.items():
            if message in self._errors or len(self._errors) < _MOST_MESSAGES:
                self._errors[message] = self._errors.get(message, 0) + count

    @property
    def in_flight(self) -> int:
        """Requests in flight, as the workers told last."""
        return sum(self._in_flight.values())

    @property
    def sent(self) -> int:
        """Requests sent, those in flight included."""
        return self._ended_sent + self.in_flight

    def worker_lost(self, worker: int) -> None:
        """Nothing of this worker is in flight any more."""
        self._in_flight.pop(worker, None)

    def snapshot(self, elapsed_s: float, is_draining: bool) -> LiveSnapshot:
        """The stage as it is now."""
        sent = self.sent
        sent_rate, done_rate = self._rates(elapsed_s, sent)
        return LiveSnapshot(
            stage=self._stage,
            stages=self._stages,
            name=self._plan.name,
            elapsed_s=elapsed_s,
            is_draining=is_draining,
            asked_rate_per_s=self._plan.asked_rate_per_s,
            streams=self._plan.streams,
            max_seconds=self._plan.max_seconds,
            max_requests=self._plan.max_arrivals,
            sent=sent,
            completed=self._completed,
            errored=self._errored,
            cancelled=self._cancelled,
            in_flight=self.in_flight,
            sent_rate_per_s=sent_rate,
            done_rate_per_s=done_rate,
            ttft_p50_s=_seconds(self._ttft, 0.5),
            ttft_p95_s=_seconds(self._ttft, 0.95),
            latency_p50_s=_seconds(self._latency, 0.5),
            latency_p95_s=_seconds(self._latency, 0.95),
            lateness_p50_s=_seconds(self._lateness, 0.5),
            lateness_p99_s=_seconds(self._lateness, 0.99),
            top_error=max(self._errors, key=self._errors.__getitem__, default=None),
        )

    def _rates(self, elapsed_s: float, sent: int) -> tuple[float, float]:
        history = self._history
        done = self._completed + self._errored
        history.append((elapsed_s, sent, done))
        while len(history) > 2 and history[0][0] < elapsed_s - _RATE_WINDOW_S:
            history.popleft()
        since_s, sent_then, done_then = history[0]
        if elapsed_s <= since_s:
            return 0.0, 0.0
        span_s = elapsed_s - since_s
        return max(0, sent - sent_then) / span_s, (done - done_then) / span_s


def _seconds(histogram: Histogram, q: float) -> float | None:
    value_ns = histogram.quantile(q)
    return None if value_ns is None else value_ns / NS_PER_S
