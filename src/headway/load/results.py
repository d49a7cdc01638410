"""How a run and its stages ended, as values."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from headway.core.clock import s_from_ns
from headway.records.record import StageEnded, StageStarted

RunOutcome = Literal["completed", "stopped", "interrupted", "aborted", "worker_lost", "failed"]


class StageResult(msgspec.Struct, frozen=True, kw_only=True):
    """One stage, counted."""

    stage: int
    name: str
    profile: dict[str, Any]
    reason: str
    """As in `records.StageEnded.reason`."""
    detail: str | None = None
    is_error_rule: bool = False
    """Whether a rule ended it that ends the whole run where `stop_scope` says so."""
    offered: int
    completed: int
    errored: int
    """Failed requests, lost ones included."""
    cancelled: int
    elapsed_s: float
    """From the stage's start to its last terminal event."""
    achieved_per_s: float
    """Requests completed a second, until sending ended."""
    workers_lost: int = 0

    @property
    def sentence(self) -> str:
        """For people: how it ended, in one line."""
        line = (
            f"stage {self.stage + 1} ({self.name}): {self.completed} completed, "
            f"{self.errored} failed, {self.cancelled} cancelled in {self.elapsed_s:.1f} s; "
            f"ended by {self.reason}"
        )
        return f"{line}: {self.detail}" if self.detail else line


def stage_result(started: StageStarted, ended: StageEnded) -> StageResult:
    """The result of a stage, as its first and its last event tell it."""
    counts = ended.counts
    return StageResult(
        stage=started.stage,
        name=started.name,
        profile=started.profile,
        reason=ended.reason,
        detail=ended.detail,
        is_error_rule=counts.is_error_rule,
        offered=ended.offered,
        completed=counts.completed,
        errored=counts.errored,
        cancelled=counts.cancelled,
        # Aborted before its start it has lasted less than no time.
        elapsed_s=max(0.0, s_from_ns(ended.at_ns)),
        achieved_per_s=counts.achieved_per_s,
        workers_lost=counts.workers_lost,
    )


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """A run, from its directory's point of view: every stage here is recorded there."""

    run_id: str
    path: Path
    outcome: RunOutcome
    """`completed`: every stage took place. `stopped`: an error rule with scope `run` ended it.
    `interrupted` and `aborted`: asked for. `worker_lost`: a worker died, whatever else happened.
    `failed`: the run could not go on; `detail` says why."""
    stages: tuple[StageResult, ...]
    detail: str | None = None
