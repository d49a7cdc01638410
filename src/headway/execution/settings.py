"""How a supervisor is set up."""

from __future__ import annotations

from dataclasses import dataclass, field

from headway.execution.attempt import MIB, KillMeans
from headway.jobs.environment import EnvironmentPolicy


@dataclass(frozen=True, slots=True)
class SupervisorSettings:
    """What the dispatcher or an embedding program decides about job processes.

    Attributes:
        modules: Operation modules to preload, as for `load_operations`.
        spare_processes: Fresh long-lane processes kept ready ahead of need.
        warm_processes: Short-lane processes kept. Where all are busy an attempt waits a moment for
            one, before another is forked for as long as it is needed.
        warm_max_jobs: Attempts after which a warm process is replaced.
        warm_max_growth_bytes: Memory growth since its fork after which it is replaced.
        threads_per_job: Limit set for OpenMP and BLAS libraries (trap 18).
        kill_means: Force one means of killing; None takes the best that the host offers.
        environment: What job processes inherit and what jobs may set.
        start_timeout_s: How long preloading the operation modules may take.
    """

    modules: tuple[str, ...]
    spare_processes: int = 1
    warm_processes: int = 2
    warm_max_jobs: int = 1000
    warm_max_growth_bytes: int = 64 * MIB
    threads_per_job: int = 1
    kill_means: KillMeans | None = None
    environment: EnvironmentPolicy = field(default_factory=EnvironmentPolicy)
    start_timeout_s: float = 60.0
