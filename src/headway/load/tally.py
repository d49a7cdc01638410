"""What the parent counts of a stage: for stop rules, the live view, and the stage's result."""

from __future__ import annotations

from headway.load.live import LiveCounters
from headway.load.messages import Counters, Report
from headway.load.observer import LiveSnapshot
from headway.load.stop_rules import StageProgress
from headway.records.record import StageCounts


class StageTally:
    """Totals of one stage, from the reports of its workers."""

    def __init__(self, live: LiveCounters) -> None:
        self._live = live
        self.progress = StageProgress()
        self.last_sent_ns = 0
        """As `Counters.last_sent_ns`."""
        self.achieved_per_s = 0.0
        """Requests completed a second, until sending ended."""
        self.workers_lost = 0
        self._sending = True

    def report(self, worker: int, report: Report, elapsed_s: float) -> None:
        """Take in a worker's report."""
        counters = report.counters
        self.last_sent_ns = max(self.last_sent_ns, counters.last_sent_ns)
        self._live.add(worker, report.in_flight, counters)
        self._add(counters, elapsed_s)

    def own(self, elapsed_s: float, *, errored: int = 0, cancelled: int = 0) -> None:
        """Take in requests that the parent itself recorded."""
        counters = Counters(
            errored=errored,
            cancelled=cancelled,
            leading_errors=errored,
            longest_errors=errored,
            trailing_errors=errored,
        )
        self._live.own(counters)
        self._add(counters, elapsed_s)

    def worker_lost(self, worker: int) -> None:
        """A worker died."""
        self.workers_lost += 1
        self._live.worker_lost(worker)

    def sending_ended(self, after_s: float) -> None:
        """What completes from now on does not count as achieved; only the first call counts."""
        if self._sending:
            self._sending = False
            self.achieved_per_s = self.progress.completed / after_s if after_s > 0 else 0.0

    def snapshot(self, elapsed_s: float) -> LiveSnapshot:
        """For the live view."""
        return self._live.snapshot(elapsed_s, is_draining=not self._sending)

    def counts(self, is_error_rule: bool) -> StageCounts:
        """For the stage's last event."""
        progress = self.progress
        return StageCounts(
            completed=progress.completed,
            errored=progress.errored,
            cancelled=progress.cancelled,
            achieved_per_s=self.achieved_per_s,
            workers_lost=self.workers_lost,
            is_error_rule=is_error_rule,
        )

    def _add(self, counters: Counters, elapsed_s: float) -> None:
        self.progress.sent, self.progress.in_flight = self._live.sent, self._live.in_flight
        self.progress.add(elapsed_s, counters)
