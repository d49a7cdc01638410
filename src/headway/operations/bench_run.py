"""One attempt of a benchmark's job: the run, its live numbers, and what it leaves behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

from headway import report
from headway.core.errors import HeadwayError
from headway.jobs import JobCancelled, JobContext
from headway.load import LiveSnapshot, Observer, Run, RunResult, RunSpec, StageResult
from headway.operations.aim import pinned
from headway.operations.ceilings import Ceilings
from headway.operations.live_numbers import fraction_of, message_of, numbers_of
from headway.operations.mask_file import mask_file
from headway.operations.result import BenchResult, result_of
from headway.operations.secrets import has_key, with_values
from headway.records.record import Note, RunEvent, StageStarted
from headway.records.run_dir import RunDirectory, RunFile
from headway.report.model import Report
from headway.report.search import TOPIC
from headway.report.terminal import VERDICT_AT_ONCE_REQUESTS, stage_findings, verdict_text

ARTIFACTS = (
    "run.json", "events.jsonl", "records.jsonl", "workers.log", "report.json", "report.csv",
    "report.html",
)  # fmt: skip
"""What users get of the run directory. The prepared inputs stay with the job: only a resumed run
needs them, and they hold the users' data once more."""

STOP_S = 5.0
"""How long requests in flight may go on after a cancel; then the load workers are killed."""
ABORT_S = 20.0
_PROGRESS_GAP_S = 0.25


class RunFailed(HeadwayError):
    """The run could not go on; the text says why. Its artifacts hold what was measured."""


class BenchRun:
    """Carries out the run of one attempt, in the job's own directory.

    Args:
        job: The job.
        spec: What is asked.
    """

    def __init__(self, job: JobContext, spec: RunSpec) -> None:
        self._job = job
        self._path = job.job_dir / "run"
        target = job.target
        shape = None if target is None else Ceilings(target)
        self._run = Run(spec, self._path, JobObserver(job), resume=True, shape=shape)

    async def execute(self) -> BenchResult:
        """Run to the end; whatever the end is, what was measured becomes the job's artifacts.

        Raises:
            ConfigError, TargetError, WorkerLost: as `Run.execute`.
            RunFailed: it broke off in the middle.
            JobCancelled: the job is to stop; the load has stopped.
        """
        running = asyncio.ensure_future(self._run.execute())
        try:
            result = await asyncio.shield(running)
        except JobCancelled:
            await self._stop(running)
            self._keep()
            raise
        made = self._keep()
        if result.outcome == "failed" or made is None:
            raise RunFailed(result.detail or "the run ended before its first stage")
        return result_of(result, made)

    async def _stop(self, running: asyncio.Future[RunResult]) -> None:
        """No request is sent from now on; within STOP_S the load workers are gone as well."""
        self._run.request_stop()
        await asyncio.wait([running], timeout=STOP_S)
        if not running.done():
            self._run.abort()
            await asyncio.wait([running], timeout=ABORT_S)
        if not running.done():
            running.cancel()
        elif not running.cancelled() and (error := running.exception()) is not None:
            self._job.log.warning("the stopped run ended with an error: %s", error)

    def _keep(self) -> Report | None:
        """Make the report of what there is, and artifacts of all; None: there is nothing."""
        if not (self._path / "run.json").exists():
            return None
        directory = RunDirectory(self._path)
        made = report.build(directory)
        report.write_reports(directory, made)
        for name in ARTIFACTS:
            file = self._path / name
            if file.exists():
                self._mask(file)
                # Nobody writes to it any more: another attempt works in a copy of the directory.
                self._job.artifact(name, file, share=True)
        return made

    def _mask(self, file: Path) -> None:
        """Take the values of secrets out of a file, should a target's reply have brought one in."""
        masker = self._job.place.masker
        if masker is not None:
            mask_file(file, masker)


async def prepared(job: JobContext, spec: RunSpec) -> RunSpec:
    """The run as this attempt carries it out: its target pinned, its secrets in their places.

    Raises:
        ConfigError: it may not go to its target any more, or a secret was not given to it.
    """
    target = job.target
    if target is not None:
        spec = await pinned(spec, target)
        _say(f"target {target.name}: {', '.join(spec.target.addresses)}")
        if not has_key(spec) and target.secret is not None:
            with_key = spec.target.model_copy(update={"api_key_secret": target.secret})
            spec = spec.model_copy(update={"target": with_key})
    return with_values(spec, job.secret)


class JobObserver(Observer):
    """Tells the job's watchers: numbers as progress, the ends of stages as lines of the log."""

    def __init__(self, job: JobContext) -> None:
        super().__init__()
        self._job = job
        self._directory: RunDirectory | None = None
        self._stage = -1
        self._next_s = 0.0

    def phase(self, name: str) -> None:
        self._job.progress(message=name)

    def run_started(self, run: RunFile, path: Path) -> None:
        self._directory = RunDirectory(path)
        _say(f"run {run.run_id}")

    def stage_started(self, event: StageStarted) -> None:
        self._stage, self._next_s = event.stage, 0.0
        _say(f"stage {event.stage + 1}: {event.name}")

    def event(self, event: RunEvent) -> None:
        if isinstance(event, Note) and event.topic == TOPIC:
            _say(event.text)

    def progress(self, snapshot: LiveSnapshot) -> None:
        if snapshot.stage == self._stage and snapshot.elapsed_s < self._next_s:
            return
        self._next_s = snapshot.elapsed_s + _PROGRESS_GAP_S
        self._job.progress(fraction_of(snapshot), message_of(snapshot), **numbers_of(snapshot))

    def stage_ended(self, result: StageResult) -> None:
        _say(result.sentence)
        if self._directory is None or result.offered > VERDICT_AT_ONCE_REQUESTS:
            return
        summary = report.stage_summary(self._directory, result.stage)
        for line in stage_findings(summary) or [verdict_text(summary.verdict.word)]:
            _say(f"  {line.plain}")


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - the job's log
