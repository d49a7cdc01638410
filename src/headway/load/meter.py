"""What a worker process knows of its own health: CPU, memory, and how late its event loop is."""

from __future__ import annotations

import resource

from headway.core.clock import Clock, s_from_ns
from headway.records.record import WorkerSample


class Meter:
    """What the worker knows of its own health since the last sample."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stage: int | None = None
        self._worker = 0
        self._start_ns = 0
        self._lag_ns = 0
        self._wall_ns = clock.monotonic_ns()
        self._cpu_s = _cpu_s()

    def stage_begins(self, stage: int, worker: int, start_ns: int) -> None:
        """Samples belong to this stage from now on."""
        self._stage, self._worker, self._start_ns = stage, worker, start_ns
        self._restart()

    def loop_lag(self, late_ns: int) -> None:
        """A timer of the loop fired this late."""
        self._lag_ns = max(self._lag_ns, late_ns)

    def sample(self, in_flight: int) -> WorkerSample | None:
        """The sample since the last one; None before the first stage."""
        if self._stage is None:
            return None
        now_ns = self._clock.monotonic_ns()
        sample = WorkerSample(
            stage=self._stage,
            worker=self._worker,
            at_ns=now_ns - self._start_ns,
            cpu_s=_cpu_s() - self._cpu_s,
            wall_s=s_from_ns(now_ns - self._wall_ns),
            loop_lag_max_ns=self._lag_ns,
            in_flight=in_flight,
            rss_bytes=_rss_bytes(),
        )
        self._restart()
        return sample

    def _restart(self) -> None:
        self._lag_ns = 0
        self._wall_ns = self._clock.monotonic_ns()
        self._cpu_s = _cpu_s()


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _rss_bytes() -> int:
    # Not psutil: importing it at the first sample held the event loop for 20 ms and more.
    try:
        with open("/proc/self/statm", "rb") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # macOS: bytes
