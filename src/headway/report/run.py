"""From a run directory to its report: pure, so that any report can be made again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from pydantic import ValidationError

from headway.core.errors import InputError
from headway.records.record import Note, StageEnded, StageStarted, WorkerDied, WorkerSample
from headway.records.run_dir import RunDirectory, RunFile
from headway.report.floor import read_floor
from headway.report.model import LostWorker, Report, RunInfo, RunNote, StageReport
from headway.report.objectives import ObjectiveSpec
from headway.report.stage import RunContext, stage_report
from headway.report.stage_data import StageData
from headway.report.verdict import overall


@dataclass(frozen=True)
class MeasuredRun:
    """A run's report, and what its stages were made from."""

    report: Report
    stages: dict[int, StageData]
    objectives: ObjectiveSpec


def build(directory: RunDirectory) -> Report:
    """Make the whole report of a run, finished or not.

    Raises:
        ConfigError: it is not a run directory.
        InputError: a file in it is damaged; the text names the line.
    """
    return measure(directory).report


def measure(directory: RunDirectory) -> MeasuredRun:
    """Make a run's report and keep the columns of its stages, for statistics across runs.

    Raises:
        ConfigError, InputError: as `build`.
    """
    run = directory.read_run()
    stages, deaths, notes = _read_events(directory)
    for record in directory.records():
        stages[record.stage].add(record)
    context = _context(run)
    reports = _with_repeats(
        [stage_report(stages[number], context) for number in sorted(stages)], stages
    )
    counted = [stage for stage in reports if stage.done_again_as is None]
    report = Report(
        run=_run_info(run),
        verdict=overall(stage.verdict.word for stage in counted),
        complete=bool(counted) and not any(stage.partial for stage in counted),
        calibration=run.calibration,
        stages=reports,
        workers_lost=[
            LostWorker(
                worker=death.worker,
                stage=death.stage,
                cause=death.cause,
                lost_requests=death.lost_requests,
            )
            for death in deaths
        ],
        notes=[RunNote(topic=note.topic, text=note.text, data=note.data) for note in notes],
    )
    return MeasuredRun(report, stages, context.objectives)


def stage_summary(directory: RunDirectory, stage: int) -> StageReport:
    """One stage's numbers, as soon as its end is written to the events.

    Raises:
        InputError: the directory tells of no such stage, or a file in it is damaged.
    """
    stages, _, _ = _read_events(directory)
    data = stages[stage]
    for record in directory.records(stage):
        data.add(record)
    data.flush()
    if data.started is None and not len(data.columns):
        raise InputError(f"{directory.path} holds nothing of stage {stage}")
    return stage_report(data, _context(directory.read_run()))


def _with_repeats(reports: list[StageReport], stages: _Stages) -> list[StageReport]:
    """Partial stages with the whole ones that were run in their place when the run was resumed."""
    begun = {number: data.started for number, data in stages.items() if data.started is not None}
    whole = {
        begun[one.stage].profile_step: one.stage
        for one in reports
        if one.stage in begun and not one.partial
    }
    return [
        msgspec.structs.replace(one, done_again_as=whole.get(begun[one.stage].profile_step))
        if one.stage in begun and one.partial
        else one
        for one in reports
    ]


class _Stages(dict[int, StageData]):
    """Stages by number, made when they are first heard of."""

    def __missing__(self, stage: int) -> StageData:
        self[stage] = StageData(stage)
        return self[stage]


def _read_events(
    directory: RunDirectory,
) -> tuple[_Stages, list[WorkerDied], list[Note]]:
    stages = _Stages()
    deaths: list[WorkerDied] = []
    notes: list[Note] = []
    for event in directory.events():
        if isinstance(event, Note):
            notes.append(event)
            continue
        if isinstance(event, WorkerDied):
            deaths.append(event)
        if event.stage is not None:
            _keep(stages[event.stage], event)
    return stages, deaths, notes


def _keep(data: StageData, event: StageStarted | StageEnded | WorkerSample | WorkerDied) -> None:
    match event:
        case StageStarted():
            data.started = event
        case StageEnded():
            data.ended = event
        case WorkerSample():
            data.samples.append(event)
        case WorkerDied():
            data.deaths.append(event)


def _context(run: RunFile) -> RunContext:
    try:
        objectives = ObjectiveSpec.model_validate(run.spec.get("objectives") or {})
    except ValidationError as error:
        raise InputError(f"run.json holds objectives that cannot be read: {error}") from error
    return RunContext(
        objectives=objectives,
        floor=read_floor(run.calibration),
        unique_prompts=_asks_unique_prompts(run.spec.get("inputs") or {}),
    )


def _asks_unique_prompts(inputs: dict[str, Any]) -> bool:
    shared = inputs.get("prefix_tokens") or 0
    return bool(inputs.get("unique_prefix")) and not shared


def _run_info(run: RunFile) -> RunInfo:
    target = run.spec.get("target") or {}
    backend = run.spec.get("backend") or {}
    identity = run.provenance.get("target") or {}
    return RunInfo(
        run_id=run.run_id,
        created=run.created,
        seed=run.seed,
        target_url=target.get("url"),
        model=target.get("model") or identity.get("model"),
        backend=backend.get("kind"),
        labels=run.spec.get("labels") or {},
        spec=run.spec,
        provenance=run.provenance,
    )
