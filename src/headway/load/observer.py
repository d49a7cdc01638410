"""What a library user or the live view can watch while a run goes on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from headway.load.messages import RequestUpdate
from headway.load.results import StageResult
from headway.records.record import RunEvent, StageStarted
from headway.records.run_dir import RunFile


class LiveSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A stage so far. Percentiles are within 1.6 %; the report's are exact."""

    stage: int
    stages: int
    name: str
    elapsed_s: float
    is_draining: bool
    asked_rate_per_s: float | None
    streams: int | None
    max_seconds: float | None
    max_requests: int | None
    sent: int
    completed: int
    errored: int
    cancelled: int
    in_flight: int
    sent_rate_per_s: float
    """Over the last seconds."""
    done_rate_per_s: float
    ttft_p50_s: float | None = None
    ttft_p95_s: float | None = None
    latency_p50_s: float | None = None
    latency_p95_s: float | None = None
    lateness_p50_s: float | None = None
    lateness_p99_s: float | None = None
    top_error: str | None = None

    @property
    def fraction_done(self) -> float | None:
        """How much of the stage is behind us (0 to 1), by whichever rule ends it first."""
        shares = []
        if self.max_seconds:
            shares.append(self.elapsed_s / self.max_seconds)
        if self.max_requests:
            ended = self.completed + self.errored + self.cancelled
            shares.append(ended / self.max_requests)
        return min(1.0, max(shares)) if shares else None


class Observer:
    """Override what you want to hear. Called on the event loop of the run: be quick.

    Attributes:
        wants_requests: Set to True to hear of single requests; workers make no updates otherwise.
    """

    wants_requests: bool = False

    def phase(self, name: str) -> None:
        """What goes on before the first stage: `preparing inputs`, `starting workers`, …"""

    def run_started(self, run: RunFile, path: Path) -> None:
        """The run directory is there and the target can be measured."""

    def stage_started(self, event: StageStarted) -> None:
        """A stage begins."""

    def progress(self, snapshot: LiveSnapshot) -> None:
        """A few times a second."""

    def requests(self, updates: Sequence[RequestUpdate]) -> None:
        """Changes in the life of requests, in batches, each with the time it happened."""

    def stage_ended(self, result: StageResult) -> None:
        """Every request of the stage has its record."""

    def event(self, event: RunEvent) -> None:
        """Anything that was appended to `events.jsonl`."""
