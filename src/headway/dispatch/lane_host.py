"""What the lanes of one process share."""

from __future__ import annotations

import random
from dataclasses import dataclass

from headway.core.clock import Clock
from headway.core.statedir import StateDir
from headway.dispatch.attempt_run import RunServices, Supervisor
from headway.dispatch.briefing import Briefings
from headway.dispatch.decision import Decider
from headway.dispatch.doorbell import Doorbell
from headway.dispatch.leases import LeaseKeeper
from headway.dispatch.metrics import AttemptMetrics
from headway.store.store import Store


@dataclass(frozen=True, slots=True)
class LaneHost:
    """A process that runs attempts.

    Attributes:
        store: Keeps the jobs.
        doorbell: Wakes its lanes.
        state_dir: As of the store.
        metrics: Of this process.
        clock: Source of times.
        rng: Source of the jitter of retries.
        briefings: Gives attempts their secrets and targets; None: jobs that need any fail.
    """

    store: Store
    doorbell: Doorbell
    state_dir: StateDir
    metrics: AttemptMetrics
    clock: Clock
    rng: random.Random
    briefings: Briefings | None = None

    def services(
        self,
        owner: str,
        supervisor: Supervisor,
        lease_s: float,
        log_bytes: int | None = None,
        result_bytes: int | None = None,
    ) -> RunServices:
        """What the attempts of one dispatcher share."""
        return RunServices(
            store=self.store,
            supervisor=supervisor,
            doorbell=self.doorbell,
            leases=LeaseKeeper(self.store, owner, self.clock, lease_s),
            decider=Decider(self.rng, self.state_dir.root),
            metrics=self.metrics,
            clock=self.clock,
            state_dir=self.state_dir,
            log_bytes=log_bytes,
            result_bytes=result_bytes,
            briefings=self.briefings,
        )
