"""How a worker process is set up. The API hands it over as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from pydantic import Field, model_validator

from headway.core.spec import SpecModel
from headway.core.states import Lane
from headway.dispatch.capacity import Capacity
from headway.dispatch.lanes import LaneSize, default_sizes
from headway.store.jobs import RetentionRule

MIB = 1024 * 1024
OWN_WORKER = "worker"
"""The name of the worker that a server starts by itself."""
PATIENCE_S = 10.0
"""Signs of life come every second; the store's callers wait 15 s for its lock."""


class LaneOverride(SpecModel):
    """A lane's slots; None keeps what was computed from CPUs and memory.

    Attributes:
        guaranteed: Slots that are always there.
        burst: Further slots while memory is plentiful.
    """

    guaranteed: int | None = Field(default=None, ge=0, le=10_000)
    burst: int | None = Field(default=None, ge=0, le=10_000)


class WorkspaceRetention(SpecModel):
    """When ended jobs are removed with all that is kept of them; None: not for this reason.

    Attributes:
        max_age_s: Ended longer ago than this.
        max_jobs: More ended jobs than this: the oldest go.
        max_bytes: More payload, results, logs and artifacts than this: the oldest go.
    """

    max_age_s: float | None = Field(default=None, gt=0)
    max_jobs: int | None = Field(default=None, ge=0)
    max_bytes: int | None = Field(default=None, ge=0)

    def rule(self, workspace: str | None = None, besides: Iterable[str] = ()) -> RetentionRule:
        """The rule for one workspace, or for all of them but those of `besides`."""
        return RetentionRule(
            max_age=None if self.max_age_s is None else timedelta(seconds=self.max_age_s),
            max_jobs=self.max_jobs,
            max_bytes=self.max_bytes,
            workspace=workspace,
            besides=tuple(besides),
        )


class RetentionSettings(WorkspaceRetention):
    """When ended jobs are removed, for workspaces that have no rule of their own.

    Attributes:
        cron: When to look, in UTC.
        workspaces: Rules by workspace; such a rule stands instead of the general one.
    """

    max_age_s: float | None = Field(default=30 * 86400.0, gt=0)
    cron: str = "17 * * * *"
    workspaces: dict[str, WorkspaceRetention] = Field(default_factory=dict)

    def rules(self) -> list[RetentionRule]:
        """All rules; each ended job is under one of them."""
        own = [each.rule(workspace) for workspace, each in self.workspaces.items()]
        return [self.rule(besides=self.workspaces), *own]


class WorkerSettings(SpecModel):
    """Everything a worker process needs to know.

    Attributes:
        state_dir: The server's state directory.
        operations: Modules or files with operations.
        lanes: Overrides of the process lanes' sizes.
        name: Tells workers of one state directory apart, in metrics.
        lease_s: A worker that is silent for so long loses its jobs.
        worker_patience_s: A worker process that gives no sign of life for so long is killed and
            started anew. Below the time that writers wait for the store, they only wait.
        drain_s: At SIGTERM, how long running attempts may take to finish.
        drain_grace_s: For those that did not: between their SIGTERM and SIGKILL.
        burst_reserve_bytes: Memory that burst slots leave free; None: a tenth of what there is.
        burst_job_bytes: Memory that one more burst attempt is assumed to take.
        log_bytes: Size at which an attempt's log is cut; None: the default.
        result_bytes: Largest result, as JSON, that is kept of a job; None: the default.
        env_inherited: Variables of the server's environment that jobs may read, besides the usual.
        data_dir: Where the files of jobs at registered targets have to lie; None: they read none.
        statistics_cron: When the host's statistics are gathered.
    """

    state_dir: Path
    operations: tuple[str, ...]
    lanes: dict[Lane, LaneOverride] = Field(default_factory=dict)
    name: str = Field(default=OWN_WORKER, pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")
    lease_s: float = Field(default=15.0, gt=0)
    worker_patience_s: float = Field(default=PATIENCE_S, ge=3)
    drain_s: float = Field(default=30.0, ge=0)
    drain_grace_s: float = Field(default=5.0, ge=0)
    burst_reserve_bytes: int | None = Field(default=None, ge=0)
    burst_job_bytes: int = Field(default=256 * MIB, gt=0)
    log_bytes: int | None = Field(default=None, gt=0)
    result_bytes: int | None = Field(default=None, ge=1024)
    retention: RetentionSettings = RetentionSettings()
    env_inherited: tuple[str, ...] = ()
    data_dir: Path | None = None
    statistics_cron: str = "* * * * *"

    @model_validator(mode="after")
    def _process_lanes(self) -> WorkerSettings:
        if Lane.INLINE in self.lanes:
            raise ValueError("the inline lane runs in the API process, not in the worker")
        return self

    def lane_sizes(self, capacity: Capacity) -> dict[Lane, LaneSize]:
        """The sizes to use on a host with this capacity."""
        sizes = default_sizes(capacity)
        for lane, override in self.lanes.items():
            size = sizes[lane]
            sizes[lane] = LaneSize(
                size.guaranteed if override.guaranteed is None else override.guaranteed,
                size.burst if override.burst is None else override.burst,
            )
        return sizes
