"""Runs attempts in this process: async functions on its event loop, others in a thread each."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headway.core.clock import Clock
from headway.core.errors import ConfigError
from headway.core.failure import ErrorInfo
from headway.core.statedir import StateDir
from headway.dispatch.inline_output import AttemptOutput
from headway.execution.attempt import (
    AttemptObserver,
    AttemptPlan,
    AttemptResult,
    Cancelled,
    Ending,
    IgnoreEvents,
    KillReport,
    LogSummary,
    OutOfMemory,
    Progress,
    Raised,
    RetryAsked,
    TimedOut,
    Timeline,
    Usage,
)
from headway.execution.debug_log import close_logger, debug_logger
from headway.execution.result_sink import ResultSink
from headway.execution.temp_dirs import PREFIX as WORKER_PREFIX
from headway.jobs import invocation
from headway.jobs.artifacts import Artifact, ArtifactDir
from headway.jobs.cancellation import cancelled_as_job_cancelled
from headway.jobs.context import AttemptPlace, JobContext, enter_job
from headway.jobs.describe import describe, type_name
from headway.jobs.environment import EnvironmentPolicy
from headway.jobs.job_dir import JobDir
from headway.jobs.operation import Operation
from headway.jobs.registry import Registry


@dataclass(slots=True)
class _Sink:
    """Takes a job's words on any thread and tells the observer on the loop's."""

    loop: asyncio.AbstractEventLoop
    observer: AttemptObserver
    stopping: bool = False

    def progress(
        self, fraction: float | None, message: str | None, numbers: dict[str, float]
    ) -> None:
        self.tell(self.observer.on_progress, Progress(fraction, message, numbers))

    def artifact(self, artifact: Artifact) -> None:
        self.tell(self.observer.on_artifact, artifact)

    def cancel_requested(self) -> bool:
        return self.stopping

    def tell(self, callback: Callable[[Any], None], value: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed; nobody listens any more
            self.loop.call_soon_threadsafe(callback, value)


class InlineAttempt:
    """One attempt in this process.

    A thread cannot be killed: one that does not heed `check_cancelled` within the grace period is
    abandoned. Its job has ended then, its output goes nowhere, and `InlineSupervisor.busy` counts
    it until it returns.
    """

    def __init__(
        self, plan: AttemptPlan, observer: AttemptObserver, shop: InlineSupervisor
    ) -> None:
        self.plan = plan
        self._shop = shop
        loop = asyncio.get_running_loop()
        self._sink = _Sink(loop, observer)
        self._observer = observer
        files = shop.state_dir
        self._masker = plan.secrets.masker()
        self._output = AttemptOutput(
            files.attempt_log(plan.job_id, plan.attempt),
            plan.limits.log_bytes,
            observer.may_write,
            lambda size: self._sink.tell(observer.on_log_growth, size),
            self._masker,
        )
        self._temp_dir = files.attempt_tmp(plan.job_id, plan.attempt)
        self._requested_ns = shop.clock.monotonic_ns()
        self._ran_ns: int | None = None
        self._stop: asyncio.Future[float] = loop.create_future()
        self._answer: asyncio.Future[invocation.Answer] = loop.create_future()
        self._task: asyncio.Task[None] | None = None
        self._whole = asyncio.create_task(self._run(), name=f"inline-{plan.job_id}")

    @property
    def pid(self) -> int | None:
        """This process."""
        return os.getpid()

    async def wait(self) -> AttemptResult:
        return await asyncio.shield(self._whole)

    async def cancel(
        self, grace_s: float | None = None, reason: str = "cancelled"
    ) -> KillReport | None:
        """Ask the function to stop; nothing is killed, so there is never a report."""
        self._ask_to_stop(self.plan.limits.grace_s if grace_s is None else grace_s)
        await asyncio.wait((self._whole,))
        return None

    def _ask_to_stop(self, grace_s: float) -> None:
        self._sink.stopping = True
        if self._task is not None:
            self._task.cancel()
        if not self._stop.done():
            self._stop.set_result(grace_s)

    async def _run(self) -> AttemptResult:
        try:
            ending = await self._ending()
        finally:
            self._output.close()
            await asyncio.to_thread(shutil.rmtree, self._temp_dir, ignore_errors=True)
        return AttemptResult(
            ending=ending,
            usage=Usage(),
            timeline=self._timeline(),
            log=LogSummary(self._output.size_bytes, self._output.discarded_bytes),
            pid=os.getpid(),
        )

    async def _ending(self) -> Ending:
        operation = self._shop.registry.get(self.plan.operation)
        if operation is None:
            error = ConfigError(f"this server has no operation {self.plan.operation}")
            return Raised(describe(error), retry=False)
        try:
            request = invocation.parse_request(operation, self.plan.request)
            job = self._context(operation)
        except Exception as error:  # noqa: BLE001 - validators run the author's code
            info = ErrorInfo(type_name(type(error)), str(error))
            return self._judge(invocation.masked(invocation.Failed(info), self._masker))
        try:
            self._begin(operation, job, invocation.arguments(operation, job, request))
            return await self._until_ended()
        finally:
            close_logger(job.log)

    def _context(self, operation: Operation) -> JobContext:
        plan, files = self.plan, self._shop.state_dir
        self._temp_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        artifacts = files.job_artifacts(plan.job_id) / str(plan.attempt)
        return JobContext(
            id=plan.job_id,
            attempt=plan.attempt,
            operation=plan.operation,
            labels=plan.labels,
            config=operation.validate_config(plan.config),
            place=AttemptPlace(
                temp_dir=self._temp_dir,
                job_dir=JobDir(files.job_work(plan.job_id), plan.attempt),
                artifacts=ArtifactDir(artifacts, plan.limits.artifact_bytes),
                env=self._environment(),
                log=debug_logger(
                    plan.job_id, files.attempt_debug_log(plan.job_id, plan.attempt), self._masker
                ),
                secrets=plan.secrets,
                masker=self._masker,
                target=plan.target,
            ),
            sink=self._sink,
        )

    def _begin(self, operation: Operation, job: JobContext, values: tuple[Any, ...]) -> None:
        """Enter the function in a context of its own, so that nothing leaks between jobs."""
        context = contextvars.copy_context()
        context.run(enter_job, job)
        context.run(self._output.enter)
        self._ran_ns = self._shop.clock.monotonic_ns()
        self._observer.on_started(os.getpid())
        self._shop.entered()
        if operation.is_async:
            body = self._call_async(operation, values)
            self._task = asyncio.create_task(body, context=context)
            self._task.add_done_callback(lambda _: self._shop.left())
            return
        # A thread for each attempt, made when it is needed: the lane's limit bounds them, and a
        # daemon does not keep the process from ending when an author's code never returns.
        threading.Thread(
            target=context.run,
            args=(self._call_sync, operation, values),
            name=f"inline-{job.id}",
            daemon=True,
        ).start()

    async def _call_async(self, operation: Operation, values: tuple[Any, ...]) -> None:
        # BaseException: a SystemExit of a job would end the loop, and the server with it (trap 8).
        try:
            value = await cancelled_as_job_cancelled(
                operation.function(*values), self._sink.cancel_requested
            )
            answer = self._answer_for(operation, value)
        except BaseException as error:  # noqa: BLE001 -- told as the job's end
            answer = invocation.answer_for_error(operation, error)
        self._give(answer)

    def _call_sync(self, operation: Operation, values: tuple[Any, ...]) -> None:
        try:
            answer = self._answer_for(operation, operation.function(*values))
        except BaseException as error:  # noqa: BLE001 - as above; and the future must resolve
            answer = invocation.answer_for_error(operation, error)
        self._sink.tell(self._give_and_leave, answer)

    def _answer_for(self, operation: Operation, value: Any) -> invocation.Answer:
        limits = self.plan.limits
        return invocation.answer_for_result(
            operation, value, self.plan.keep_result, limits.result_bytes
        )

    def _give_and_leave(self, answer: invocation.Answer) -> None:
        self._shop.left()
        self._give(answer)

    def _give(self, answer: invocation.Answer) -> None:
        if not self._answer.done():
            self._answer.set_result(invocation.masked(answer, self._masker))

    def _environment(self) -> dict[str, str]:
        base = self._shop.environment.base(os.environ)
        return {**base, **self.plan.env, **self.plan.secrets.env}

    async def _until_ended(self) -> Ending:
        """Wait for the answer, the time limit, or a cancel and its grace period."""
        timeout_s = self.plan.limits.timeout_s
        await self._first(timeout_s, self._answer, self._stop)
        timed_out = not self._answer.done() and not self._stop.done()
        if timed_out:
            self._ask_to_stop(self.plan.limits.grace_s)
        if self._stop.done():
            await self._first(self._stop.result(), self._answer)
        if timed_out:
            assert timeout_s is not None
            return TimedOut(timeout_s)
        if self._stop.done():
            return Cancelled()
        return await asyncio.to_thread(self._judge, self._answer.result())

    async def _first(self, timeout_s: float | None, *futures: asyncio.Future[Any]) -> None:
        await asyncio.wait(futures, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)

    def _judge(self, answer: invocation.Answer) -> Ending:
        match answer:
            case invocation.AskedRetry(after_s, reason):
                return RetryAsked(after_s, reason)
            case invocation.Failed(error, retry, out_of_memory):
                if out_of_memory:
                    return OutOfMemory("the operation raised MemoryError", error)
                return Raised(error, retry)
            case invocation.Returned(result):
                return self._keep(result)

    def _keep(self, result: bytes | None) -> Ending:
        directory = self._shop.state_dir.job_results(self.plan.job_id)
        sink = ResultSink(directory, self.plan.attempt)
        try:
            sink.add(result or b"")
            return sink.complete(None if result is None else len(result))
        except OSError as error:
            return Raised(describe(error), retry=False)

    def _timeline(self) -> Timeline:
        return Timeline(
            claimed_ns=self.plan.claimed_ns,
            requested_ns=self._requested_ns,
            forked_ns=None,
            ran_ns=self._ran_ns,
            returned_ns=None,
            ended_ns=self._shop.clock.monotonic_ns(),
        )


class InlineSupervisor:
    """Starts inline attempts; the counterpart of the process lanes' supervisor.

    Args:
        registry: The operations.
        state_dir: Logs, results, artifacts, temp directories.
        clock: Monotonic time.
        environment: What a job's environment takes over from the server's.
    """

    def __init__(
        self,
        registry: Registry,
        state_dir: StateDir,
        clock: Clock,
        environment: EnvironmentPolicy | None = None,
    ) -> None:
        self.registry = registry
        self.state_dir = state_dir
        self.clock = clock
        self.environment = environment or EnvironmentPolicy()
        self.busy = 0

    def remove_stale(self) -> None:
        """Remove the temp directories of attempts that died with their process (J12)."""
        for path in self.state_dir.tmp.iterdir():
            if not path.name.startswith(WORKER_PREFIX):
                shutil.rmtree(path, ignore_errors=True)

    async def start(
        self, plan: AttemptPlan, observer: AttemptObserver | None = None
    ) -> InlineAttempt:
        return InlineAttempt(plan, observer or IgnoreEvents(), self)

    def entered(self) -> None:
        """A function was entered."""
        self.busy += 1

    def left(self) -> None:
        """A function has returned, perhaps long after its job ended."""
        self.busy -= 1
