"""How a run and its stages ended, as values."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

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
