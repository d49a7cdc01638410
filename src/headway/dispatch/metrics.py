"""What the processes that run attempts count. `docs/metrics.md` explains each name."""

from __future__ import annotations

from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from headway.core.clock import s_from_ns
from headway.core.states import Lane, Outcome
from headway.dispatch.lanes import LaneSlots
from headway.execution.attempt import AttemptResult
from headway.store.attempts import AttemptEnd, ClaimedJob, Finish, Release, Rescued

_JOB = ["operation", "lane"]
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300,
            1800, 7200)  # fmt: skip
_BYTES = tuple(2.0**power for power in range(23, 38))
_LAG = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1)


@dataclass(frozen=True, slots=True)
class _Series:
    """What is counted of one operation."""

    started: Counter
    queue_wait: Histogram
    run: Histogram
    peak_rss: Histogram
    rss_growth: Counter
    cpu: Counter
    ended: dict[tuple[Outcome, str], Counter] = field(default_factory=dict)


class AttemptMetrics:
    """Metrics of one process, in a registry of its own: two of them may live in one process.

    Args:
        process: `worker` or `api`; a label wherever both count the same thing.
    """

    def __init__(self, process: str) -> None:
        self.registry = registry = CollectorRegistry()
        self._process = process
        self._series: dict[tuple[str, str], _Series] = {}
        self._started = Counter(
            "headway_attempts_started", "Attempts begun.", _JOB, registry=registry
        )
        self._ended = Counter(
            "headway_attempts_ended",
            "Attempts ended; disposition says what became of the job.",
            [*_JOB, "outcome", "disposition"],
            registry=registry,
        )
        self._queue_wait = Histogram(
            "headway_queue_wait_seconds",
            "From ready to run to claimed.",
            _JOB,
            buckets=_SECONDS,
            registry=registry,
        )
        self._run = Histogram(
            "headway_run_seconds",
            "From claimed to ended.",
            _JOB,
            buckets=_SECONDS,
            registry=registry,
        )
        self._peak_rss = Histogram(
            "headway_attempt_peak_rss_bytes",
            "Peak memory of an attempt's whole process tree.",
            _JOB,
            buckets=_BYTES,
            registry=registry,
        )
        self._rss_growth = Counter(
            "headway_attempt_rss_growth_bytes",
            "Memory by which warm processes grew.",
            _JOB,
            registry=registry,
        )
        self._cpu = Counter(
            "headway_attempt_cpu_seconds",
            "CPU time of attempts' process trees.",
            _JOB,
            registry=registry,
        )
        self._slots = Gauge(
            "headway_lane_slots",
            "Slots of a lane: guaranteed, burst, and used.",
            ["lane", "kind"],
            registry=registry,
        )
        self._leases_lost = Counter(
            "headway_leases_lost", "Attempts stopped as no longer current.", registry=registry
        )
        self._rescued = Counter(
            "headway_rescued", "Attempts of dead owners taken over.", ["state"], registry=registry
        )
        self._processes = Gauge(
            "headway_processes", "Job processes by kind.", ["kind"], registry=registry
        )
        self._inline_busy = Gauge(
            "headway_inline_busy",
            "Inline functions that have been entered and not left, abandoned ones included.",
            registry=registry,
        )
        self._rejections = Counter(
            "headway_rejections", "Jobs refused, by reason.", ["reason"], registry=registry
        )
        self._loop_lag = Histogram(
            "headway_loop_lag_seconds",
            "How late the event loop runs a timer.",
            ["process"],
            buckets=_LAG,
            registry=registry,
        )
        self._store_series: dict[str, Histogram] = {}
        self._store_seconds = Histogram(
            "headway_store_seconds",
            "Time of store operations, with their wait for the thread and the disk.",
            ["process", "kind"],
            buckets=_LAG,
            registry=registry,
        )
        self._state_dir_bytes = Gauge(
            "headway_state_dir_bytes", "Size of the state directory's parts.", ["part"],
            registry=registry,
        )  # fmt: skip
        self._memory_available = Gauge(
            "headway_memory_available_bytes", "Memory that can still be taken.", registry=registry
        )

    def exposition(self) -> bytes:
        """The metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def started(self, claimed: ClaimedJob) -> None:
        job, series = claimed.job, self._series_of(claimed)
        series.started.inc()
        if job.started_at is not None:
            waited_s = (job.started_at - claimed.ready_at).total_seconds()
            series.queue_wait.observe(max(0.0, waited_s))

    def ended(self, claimed: ClaimedJob, result: AttemptResult, end: AttemptEnd) -> None:
        disposition = "final" if isinstance(end, Finish) else "retried"
        if isinstance(end, Release):
            disposition = "released"
        series = self._series_of(claimed)
        ended = series.ended.get((result.outcome, disposition))
        if ended is None:
            job = claimed.job
            ended = self._ended.labels(job.operation, job.lane, result.outcome, disposition)
            series.ended[result.outcome, disposition] = ended
        ended.inc()
        series.peak_rss.observe(result.usage.peak_rss_bytes)
        series.rss_growth.inc(max(0, result.usage.rss_growth_bytes))
        series.cpu.inc(max(0.0, result.usage.cpu_s))
        began_ns = result.timeline.claimed_ns or result.timeline.requested_ns
        series.run.observe(s_from_ns(result.timeline.ended_ns - began_ns))

    def _series_of(self, claimed: ClaimedJob) -> _Series:
        """The series of an operation, kept: finding one by its labels costs more than counting."""
        labels = (claimed.job.operation, claimed.job.lane)
        series = self._series.get(labels)
        if series is None:
            series = self._series[labels] = _Series(
                started=self._started.labels(*labels),
                queue_wait=self._queue_wait.labels(*labels),
                run=self._run.labels(*labels),
                peak_rss=self._peak_rss.labels(*labels),
                rss_growth=self._rss_growth.labels(*labels),
                cpu=self._cpu.labels(*labels),
            )
        return series

    def lease_lost(self) -> None:
        self._leases_lost.inc()

    def rescued(self, rescued: list[Rescued]) -> None:
        for each in rescued:
            self._rescued.labels(each.state).inc()

    def lane(self, lane: Lane, slots: LaneSlots) -> None:
        """Tell how a lane's slots stand."""
        self._slots.labels(lane, "guaranteed").set(slots.size.guaranteed)
        self._slots.labels(lane, "burst").set(slots.size.burst)
        self._slots.labels(lane, "used").set(slots.used)

    def processes(self, statistics: dict[str, int]) -> None:
        for kind, count in statistics.items():
            self._processes.labels(kind).set(count)

    def inline_busy(self, count: int) -> None:
        self._inline_busy.set(count)

    def rejected(self, reason: str, count: int) -> None:
        self._rejections.labels(reason).inc(count)

    def loop_lag(self, lag_s: float) -> None:
        self._loop_lag.labels(self._process).observe(lag_s)

    def store_call(self, kind: str, seconds: float) -> None:
        series = self._store_series.get(kind)
        if series is None:
            series = self._store_series[kind] = self._store_seconds.labels(self._process, kind)
        series.observe(seconds)

    def host(self, memory_available_bytes: int, parts: dict[str, int]) -> None:
        """Tell the host statistics that a system job gathers."""
        self._memory_available.set(memory_available_bytes)
        for part, size in parts.items():
            self._state_dir_bytes.labels(part).set(size)
