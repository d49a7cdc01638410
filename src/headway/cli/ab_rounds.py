"""The runs of an A/B test, one after another in the order A B B A A B B A …"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from headway.cli.interrupts import interrupts
from headway.core.errors import HeadwayError, TargetError

if TYPE_CHECKING:
    from headway.load import Run, RunSpec
    from headway.report.model import Report

Label = Literal["a", "b"]


@dataclass(frozen=True)
class PlannedRun:
    """One run: which side, in which round, and where it is kept."""

    number: int
    label: Label
    path: Path


def planned(rounds: int, directory: Path) -> Iterator[PlannedRun]:
    """The runs in their order: what drifts evenly hits A and B alike over each two rounds."""
    for number in range(1, rounds + 1):
        labels: tuple[Label, Label] = ("a", "b") if number % 2 else ("b", "a")
        for label in labels:
            yield PlannedRun(number, label, directory / f"round-{number:02d}-{label}")


class Rounds:
    """Carries out the runs of an A/B test.

    Args:
        specs: What is asked of A and of B; both runs of a round get the same seed.
        directory: Where the run directories are made.
        told: Called after each run, with its report.
    """

    def __init__(
        self,
        specs: dict[Label, RunSpec],
        directory: Path,
        told: Callable[[PlannedRun, Report], None],
    ) -> None:
        self._specs, self._directory, self._told = specs, directory, told
        self._run: Run | None = None
        self._stop_asked = False

    async def execute(self, rounds: int) -> list[tuple[Path, Path]]:
        """Carry out the rounds.

        Returns:
            The run directories of A and B of each whole round; fewer than asked for when it was
            interrupted.

        Raises:
            ConfigError: as `load.run`.
            TargetError: a target cannot be measured, or not one of its requests completed.
            HeadwayError: a run could not go on; the disk is full, for example.
        """
        done: dict[tuple[int, Label], Path] = {}
        with interrupts(self._stop, self._abort):
            for one in planned(rounds, self._directory):
                if await self._whole(one):
                    done[one.number, one.label] = one.path
                if self._stop_asked:
                    break
        whole = [n for n in range(1, rounds + 1) if (n, "a") in done and (n, "b") in done]
        return [(done[n, "a"], done[n, "b"]) for n in whole]

    async def _whole(self, one: PlannedRun) -> bool:
        """Carry out one run; whether it ended by itself."""
        from headway.load import Run
        from headway.records.run_dir import RunDirectory
        from headway.report.files import write_reports
        from headway.report.run import build

        self._run = Run(self._spec(one), one.path)
        result = await self._run.execute()
        if result.outcome in ("interrupted", "aborted"):
            return False
        where = f"round {one.number}, {one.label.upper()}"
        if result.outcome == "failed":
            raise HeadwayError(f"{where}: the run could not go on: {result.detail}")
        if all(stage.completed == 0 for stage in result.stages):
            raise TargetError(f"{where}: not one request completed; see {one.path}")
        directory = RunDirectory(one.path)
        report = build(directory)
        write_reports(directory, report)
        self._told(one, report)
        return True

    def _spec(self, one: PlannedRun) -> RunSpec:
        spec = self._specs[one.label]
        # The client's own floor does not change from round to round: measuring it once is enough.
        calibrate = spec.calibrate and one.number == 1
        return spec.model_copy(update={"seed": spec.seed + one.number - 1, "calibrate": calibrate})

    def _stop(self) -> None:
        self._stop_asked = True
        if self._run is not None:
            self._run.request_stop()

    def _abort(self) -> None:
        if self._run is not None:
            self._run.abort()
