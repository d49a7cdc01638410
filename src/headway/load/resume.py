"""Going on with a run that lost its process (N6).

Whole stages stay as they are. A stage that was begun and never ended stays as well, as a partial
one: nothing is added to it, because two halves measured at different times are no measurement. The
run goes on behind it, under stage numbers that nobody has used, so that neither a schedule nor a
prompt comes twice.
"""

from __future__ import annotations

import msgspec

from headway.core.errors import ConfigError
from headway.load.provenance import public_spec
from headway.load.results import StageResult, stage_result
from headway.load.spec import RunSpec
from headway.records.record import Note, StageEnded, StageStarted
from headway.records.run_dir import RunDirectory, RunFile

BROKEN_REASONS = frozenset({"interrupted", "failed"})
"""Ends that a stage did not come to by itself: the job was drained, the disk was full."""


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """What a run directory tells of a run that did not come to its end.

    Attributes:
        results: The whole stages.
        steps: The steps of the load profile that these stages carried out.
        broken: The stages that stay partial, in order.
        next_stage: The first number that no stage has.
    """

    run: RunFile
    results: tuple[StageResult, ...] = ()
    steps: frozenset[int] = frozenset()
    broken: tuple[StageStarted, ...] = ()
    next_stage: int = 0

    def agenda(self, steps: int, needed: int) -> list[int]:
        """The steps that are still to be carried out.

        It goes on at the step behind the last one that was begun. A broken stage is only run again
        where the rest cannot do without it: when later steps are planned from its result, and when
        nothing would have been measured otherwise.

        Args:
            steps: How many the load profile has.
            needed: How many of the first ones the others are planned from.
        """
        broken = {event.profile_step for event in self.broken} - self.steps
        begun = max(self.steps | broken, default=-1)
        again = {step for step in broken if step < needed}
        if not again and not self.steps and begun + 1 >= steps:
            again = broken
        return sorted(again) + list(range(begun + 1, steps))

    def note(self) -> Note:
        """What readers of the run must know."""
        names = ", ".join(f"{event.stage + 1} ({event.name})" for event in self.broken)
        lost = f"stage {names} was cut short and stays partial" if names else "no stage was lost"
        return Note(
            topic="resumed",
            text=f"the run lost its process and was resumed; {lost}",
            data={
                "partial_stages": [event.stage for event in self.broken],
                "next_stage": self.next_stage,
            },
        )


def read_past(directory: RunDirectory, spec: RunSpec) -> Past | None:
    """What a directory holds of the run that `spec` describes; None: nothing was begun.

    Raises:
        ConfigError: it holds another run.
        InputError: a file in it is damaged.
    """
    if not (directory.path / "run.json").exists():
        return None
    run = directory.read_run()
    _check_same(run, spec, directory)
    started: dict[int, StageStarted] = {}
    ended: dict[int, StageEnded] = {}
    for event in directory.events():
        if isinstance(event, StageStarted):
            started[event.stage] = event
        elif isinstance(event, StageEnded) and event.reason not in BROKEN_REASONS:
            ended[event.stage] = event
    whole = [started[stage] for stage in sorted(started) if stage in ended]
    return Past(
        run=run,
        results=tuple(stage_result(event, ended[event.stage]) for event in whole),
        steps=frozenset(event.profile_step for event in whole),
        broken=tuple(started[stage] for stage in sorted(started) if stage not in ended),
        next_stage=max(started, default=-1) + 1,
    )


def check_same_workload(past: Past, workload_hash: str) -> None:
    """Refuse to go on with other requests than the run began with.

    Raises:
        ConfigError: the inputs have changed.
    """
    before = past.run.provenance.get("workload_hash")
    if before != workload_hash:
        raise ConfigError(
            "the inputs are not those that the run began with (their hash differs); "
            "begin a new run, or bring the former file back"
        )


def _check_same(run: RunFile, spec: RunSpec, directory: RunDirectory) -> None:
    before = RunSpec.model_validate(run.spec)
    now = RunSpec.model_validate(public_spec(spec))
    changed = [name for name in RunSpec.model_fields if getattr(before, name) != getattr(now, name)]
    if changed:
        raise ConfigError(
            f"{directory.path} holds another run: not the {', '.join(changed)} that is asked for; "
            "leave that out to go on with it, or begin a new one in another --run-dir"
        )
