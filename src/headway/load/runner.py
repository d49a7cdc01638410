"""A run from its description to its result: inputs, fleet, stages one after another."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from headway.backends.backend import TargetInfo
from headway.backends.spec import OpenAIBackendSpec
from headway.core.clock import Clock, SystemClock
from headway.core.errors import ConfigError, HeadwayError
from headway.load.early import EarlyProcesses
from headway.load.fleet import Barrier, Deadlines, Fleet, RunSetup
from headway.load.inputs import Recipe, offsets_ns
from headway.load.journal import Journal
from headway.load.messages import FromWorker
from headway.load.null_server import NullServer
from headway.load.observer import Observer
from headway.load.preparing import prepare_inputs
from headway.load.provenance import (
    available_cpus,
    provenance,
    public_spec,
    target_provenance,
)
from headway.load.results import RunOutcome, RunResult, StageResult
from headway.load.resume import Past, check_same_workload, read_past
from headway.load.run_place import RunPlace
from headway.load.sizing import worker_count
from headway.load.spec import RunSpec, SearchProfile, TraceInputSpec
from headway.load.stage_run import RunContext, StageRun
from headway.load.stages import (
    Planner,
    StageLimits,
    StagePlan,
    count_needed,
    count_stages,
    plan_stages,
)
from headway.load.stop_rules import RuleFactory
from headway.load.worker_process import WorkerProcess
from headway.records.run_dir import RunDirectory, RunFile

if TYPE_CHECKING:
    from headway.load.search_stages import SearchStages

T = TypeVar("T")

_START_LEAD_S = 0.05


class Run:
    """One load test. Make it, `await execute()`; stop it from outside if need be.

    Args:
        spec: What is asked.
        run_dir: A directory without a run in it; made when absent.
        observer: Hears what happens.
        rules: More stop rules, each made anew for each stage.
        resume: Go on with the run that the directory holds, when it holds one.
        deadlines: How long workers may take to start, and to be silent.
        shape: Bounds each stage before it begins; a ConfigError of it ends the run.
        clock: The host's clocks.
        fleet: Workers that another run lends to this one, and uses again afterwards.
        early: Processes that were started already; the run takes those that it can use.
        start_lead_s: From a stage's start message to its start, so that every worker has it before
            (trap 30). A worker that gets it later is late with its first requests.
    """

    def __init__(
        self,
        spec: RunSpec,
        run_dir: Path,
        observer: Observer | None = None,
        rules: Sequence[RuleFactory] = (),
        resume: bool = False,
        deadlines: Deadlines | None = None,
        shape: Callable[[StagePlan], StagePlan] | None = None,
        clock: Clock | None = None,
        fleet: Fleet | None = None,
        early: EarlyProcesses | None = None,
        start_lead_s: float = _START_LEAD_S,
    ) -> None:
        self._spec = spec
        self._path = run_dir
        self._observer = observer or Observer()
        self._rules = tuple(rules)
        self._resume = resume
        self._past: Past | None = None
        self._deadlines = deadlines or Deadlines()
        self._shape = shape
        self._clock = clock or SystemClock()
        self._borrowed = fleet
        self._early = early
        self._start_lead_s = start_lead_s
        self._run_id = secrets.token_hex(8)
        self._starting: asyncio.Task[Any] | None = None
        self._stage: StageRun | None = None
        self._null_server: NullServer | None = None
        self._stop_asked = False
        self._aborted = False

    def request_stop(self) -> None:
        """End in peace: sending ends now, requests in flight get the grace period."""
        self._stop_asked = True
        if self._stage is not None:
            self._stage.request_stop()
        elif self._starting is not None:
            self._starting.cancel()

    def abort(self) -> None:
        """End now: workers are killed, every request still gets its record."""
        self._aborted = True
        self.request_stop()
        if self._stage is not None:
            self._stage.abort()

    async def execute(self) -> RunResult:
        """Carry the run out.

        Raises:
            ConfigError: the description, the inputs or the directory cannot be used.
            TargetError: the target cannot be measured.
            WorkerLost: a worker died before the first stage.
        """
        place = RunPlace(self._path)
        place.make()
        try:
            return await self._execute_in_place()
        finally:
            place.take_away_unused()

    async def _execute_in_place(self) -> RunResult:
        self._look_back()
        if self._borrowed is not None:
            return await self._execute_with(self._borrowed)
        fleet = Fleet(self._path / "workers.log", self._deadlines, self._clock, self)
        try:
            return await self._execute_with(fleet)
        finally:
            self._close_null_server()
            await (fleet.kill() if self._aborted else fleet.close())

    async def _execute_with(self, fleet: Fleet) -> RunResult:
        fleet.listener = self
        workers = worker_count(self._spec, available_cpus())
        # They load their modules while the inputs are prepared.
        if self._early is not None and (spawned := self._early.take_worker()) is not None:
            fleet.adopt(spawned)
        fleet.spawn(workers)
        self._start_null_server()
        recipe = await self._interruptible(self._prepare_inputs())
        if recipe is None:
            return self._result([], None)
        calibration = await self._calibrate(fleet)
        barrier = Barrier(fleet, workers, self._setup(recipe))
        self._observer.phase("starting workers")
        target = await self._interruptible(barrier.reach())
        if target is None:
            return self._result([], None)
        run = self._begun(recipe, target, workers, calibration)
        return await self._run_stages(run, recipe, barrier)

    # --- the fleet's listener ------------------------------------------------------------------

    def worker_said(self, worker: WorkerProcess, message: FromWorker) -> None:
        """Pass a worker's message to the stage that runs."""
        if self._stage is not None:
            self._stage.worker_said(worker, message)

    def worker_lost(self, worker: WorkerProcess, cause: str) -> None:
        """Pass a worker's death to the stage that runs."""
        if self._stage is not None:
            self._stage.worker_lost(worker, cause)

    # --- parts ---------------------------------------------------------------------------------

    async def _interruptible(self, start: Coroutine[Any, Any, T]) -> T | None:
        """Await one step before the first stage; None when a stop was asked for meanwhile."""
        if self._stop_asked:
            start.close()
            return None
        starting = asyncio.get_running_loop().create_task(start)
        self._starting = starting
        try:
            return await starting
        except asyncio.CancelledError:
            if self._was_stopped() and starting.cancelled():
                return None
            raise  # Somebody cancels the run itself.
        finally:
            self._starting = None

    def _was_stopped(self) -> bool:
        return self._stop_asked

    async def _prepare_inputs(self) -> Recipe:
        self._observer.phase("preparing inputs")
        return await prepare_inputs(self._spec, self._path)

    def _setup(self, recipe: Recipe) -> RunSetup:
        return RunSetup(
            spec_json=self._spec.model_dump_json().encode(),
            recipe=msgspec.msgpack.encode(recipe),
            observe=self._observer.wants_requests,
        )

    def _look_back(self) -> None:
        if self._resume:
            self._past = read_past(RunDirectory(self._path), self._spec)
        elif (self._path / "run.json").exists():
            raise ConfigError(f"{self._path} already holds a run; choose another --run-dir")
        if self._past is not None:
            self._run_id = self._past.run.run_id

    def _begun(
        self,
        recipe: Recipe,
        target: TargetInfo,
        workers: int,
        calibration: dict[str, Any] | None,
    ) -> RunFile:
        """What `run.json` says: as it stands there, or made now."""
        if self._past is not None:
            check_same_workload(self._past, recipe.workload_hash)
            return self._past.run
        run = self._run_file(recipe)
        run.provenance |= {"target": target_provenance(target), "workers": workers}
        run.calibration = calibration
        return run

    def _start_null_server(self) -> None:
        # Only protocols that the simulated server speaks can be calibrated.
        speaks = isinstance(self._spec.backend, OpenAIBackendSpec)
        if self._spec.calibrate and speaks and self._past is None:
            started = self._early.take_null_server() if self._early is not None else None
            self._null_server = NullServer(started)

    def _close_null_server(self) -> None:
        if self._null_server is not None:
            self._null_server.close()
            self._null_server = None

    async def _calibrate(self, fleet: Fleet) -> dict[str, Any] | None:
        """The floor of this client, measured by the workers that will measure the target."""
        if self._null_server is None:
            return None
        # Here, not at the top: calibration runs runs, and needs reports, which take long to load.
        from headway.load.calibration import calibrate

        self._observer.phase("calibrating")
        floor = await self._interruptible(calibrate(self._spec, self._null_server, fleet))
        fleet.listener = self
        self._close_null_server()
        return floor

    def _run_file(self, recipe: Recipe) -> RunFile:
        return RunFile(
            run_id=self._run_id,
            created=self._clock.now().isoformat(),
            seed=self._spec.seed,
            spec=public_spec(self._spec),
            provenance=provenance(self._spec, recipe),
        )

    async def _run_stages(self, run: RunFile, recipe: Recipe, barrier: Barrier) -> RunResult:
        past = self._past
        directory = RunDirectory(self._path) if past else RunDirectory.create(self._path, run)
        self._observer.run_started(run, self._path)
        agenda = self._agenda()
        context = RunContext(
            spec=self._spec,
            recipe=recipe,
            barrier=barrier,
            journal=Journal(directory, self._observer),
            clock=self._clock,
            stages=len(agenda) + (past.next_stage if past else 0),
            start_lead_s=self._start_lead_s,
            rules=self._rules,
        )
        results = list(past.results) if past else []
        try:
            self._open_journal(context)
            search = self._search(run, recipe, directory)
            planners = self._planners(recipe, search)
            await self._one_after_another(planners, agenda, context, results)
            if search is not None and results:
                context.journal.event(await asyncio.to_thread(search.note, results))
        except (HeadwayError, OSError) as error:
            return self._result(results, str(error))
        finally:
            self._stage = None
            directory.close()
        return self._result(results, None)

    def _agenda(self) -> list[int]:
        """The steps of the load profile that are to be carried out."""
        steps = count_stages(self._spec)
        if self._past is None:
            return list(range(steps))
        return self._past.agenda(steps, count_needed(self._spec))

    def _open_journal(self, context: RunContext) -> None:
        notes = context.recipe.notes if self._past is None else (self._past.note(),)
        for note in notes:
            context.journal.event(note)

    def _search(self, run: RunFile, recipe: Recipe, directory: RunDirectory) -> SearchStages | None:
        if not isinstance(self._spec.profile, SearchProfile):
            return None
        # Here, not at the top: only a search needs reports, which take long to load.
        from headway.load.search_stages import SearchStages
        from headway.report import stage_summary
        from headway.report.floor import read_floor

        floor = read_floor(run.calibration)
        return SearchStages(
            self._spec.profile,
            StageLimits(self._spec, recipe.conversations),
            lambda stage: stage_summary(directory, stage),
            floor.max_requests_per_s if floor else None,
        )

    def _planners(self, recipe: Recipe, search: SearchStages | None) -> Sequence[Planner]:
        if search is not None:
            return [search.next_stage] * count_stages(self._spec)
        is_trace = isinstance(self._spec.inputs, TraceInputSpec)
        trace_ns = offsets_ns(recipe) if is_trace else None
        return list(plan_stages(self._spec, recipe.conversations, trace_ns))

    async def _one_after_another(
        self,
        planners: Sequence[Planner],
        agenda: Sequence[int],
        context: RunContext,
        results: list[StageResult],
    ) -> None:
        first = self._past.next_stage if self._past else 0
        for number, step in enumerate(agenda, first):
            if self._is_stopped_by(results):
                return
            # In a thread: a search reads the records of the stage before, while workers report.
            plan = await self._interruptible(asyncio.to_thread(planners[step], results))
            if plan is None or self._stop_asked:
                return
            if self._shape is not None:
                plan = self._shape(plan)
            if step != number:
                plan = msgspec.structs.replace(plan, step=step)
            # Workers that died in the stage before are replaced: this is the next clean start.
            if await self._interruptible(context.barrier.reach()) is None:
                return
            self._stage = StageRun(number, plan, context)
            results.append(await self._stage.run())
            self._stage = None

    def _is_stopped_by(self, results: Sequence[StageResult]) -> bool:
        """Whether an error rule has ended the whole run."""
        ended_by_rule = bool(results) and results[-1].is_error_rule
        return ended_by_rule and self._spec.limits.stop_scope == "run"

    def _result(self, results: Sequence[StageResult], failure: str | None) -> RunResult:
        outcome: RunOutcome = "completed"
        if failure is not None:
            outcome = "failed"
        elif self._stop_asked:
            outcome = "aborted" if self._aborted else "interrupted"
        elif any(result.workers_lost for result in results):
            outcome = "worker_lost"
        elif self._is_stopped_by(results):
            outcome = "stopped"
        return RunResult(
            run_id=self._run_id,
            path=self._path,
            outcome=outcome,
            stages=tuple(results),
            detail=failure,
        )
