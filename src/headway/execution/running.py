"""One running attempt: from a process for it to the result, whatever happens between."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headway.core.clock import Clock, s_from_ns
from headway.core.failure import ErrorInfo
from headway.core.statedir import StateDir
from headway.core.states import Lane
from headway.execution.attempt import (
    AttemptObserver,
    AttemptPlan,
    AttemptResult,
    Died,
    Ending,
    KillReport,
    LogSummary,
    NotStarted,
    Progress,
    Raised,
    Timeline,
    Usage,
)
from headway.execution.endings import Stop, death, told, usage_of
from headway.execution.forkserver import ForkRefused
from headway.execution.kill import wait_dead
from headway.execution.log_pump import LogPump, LogRules
from headway.execution.messages import (
    ArtifactMade,
    Ended,
    Entered,
    FromJob,
    GaveResult,
    ProgressMade,
    ResultChunk,
    Start,
)
from headway.execution.process import Exit, JobProcessHandle
from headway.execution.process_factory import ProcessFactory
from headway.execution.process_pool import ProcessPool
from headway.execution.progress_gate import ProgressGate
from headway.execution.result_sink import ResultSink
from headway.execution.temp_dirs import TempDirs
from headway.execution.usage_sampler import UsageSampler, Watched
from headway.jobs.masking import StreamMasker

PROCESS_TRIES = 3
HANG_UP_LIMIT_S = 1.0
"""How long a process may live after it closed its control socket."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """What every attempt of a supervisor shares."""

    factory: ProcessFactory
    pool: ProcessPool
    sampler: UsageSampler
    temp_dirs: TempDirs
    state_dir: StateDir
    work_dir: str
    clock: Clock


class RunningAttempt:
    """One attempt in a process that it has for itself. Made by `Supervisor.start`."""

    def __init__(self, plan: AttemptPlan, observer: AttemptObserver, workshop: Workshop) -> None:
        self.plan = plan
        self._observer = observer
        self._shop = workshop
        self._clock = workshop.clock
        loop = asyncio.get_running_loop()
        self._requested_ns = self._clock.monotonic_ns()
        self._forked_ns: int | None = None
        self._ran_ns: int | None = None
        self._process: JobProcessHandle | None = None
        self._pid: int | None = None
        self._stop: Stop | None = None
        self._kill_now: asyncio.Future[None] = loop.create_future()
        self._timers: list[asyncio.TimerHandle] = []
        self._kill_at: asyncio.TimerHandle | None = None
        self._result = ResultSink(workshop.state_dir.job_results(plan.job_id), plan.attempt)
        self._progress = ProgressGate(observer.on_progress)
        self._task = loop.create_task(self._run())

    @property
    def pid(self) -> int | None:
        """Process id of the main process once there is one."""
        return self._pid

    async def wait(self) -> AttemptResult:
        """The result, once the tree is gone and the log complete. May be awaited repeatedly."""
        return await asyncio.shield(self._task)

    def add_done_callback(self, callback: Callable[[RunningAttempt], None]) -> None:
        """Call `callback` when the result is there."""
        self._task.add_done_callback(lambda _: callback(self))

    async def cancel(
        self, grace_s: float | None = None, reason: str = "cancelled"
    ) -> KillReport | None:
        """Stop the attempt: SIGTERM, the grace period, then SIGKILL for the whole tree.

        Args:
            grace_s: Seconds; None takes the plan's, 0 kills at once. A later call with a shorter
                grace shortens the first one's.
            reason: Goes into the report; the first call's counts.

        Returns:
            The report; None when the attempt ended by itself before any signal.
        """
        if not self._task.done():
            self._request_stop(reason, self.plan.limits.grace_s if grace_s is None else grace_s)
        return (await self.wait()).kill

    # --- stopping -------------------------------------------------------------------------------

    def _request_stop(self, reason: str, grace_s: float, tree_bytes: int = 0) -> None:
        loop = asyncio.get_running_loop()
        if self._stop is None:
            self._stop = Stop(reason, self._clock.monotonic_ns(), tree_bytes)
            if grace_s > 0 and self._process is not None:
                self._process.send_signal(signal.SIGTERM)
        if grace_s <= 0:
            self._kill()
        elif self._kill_at is None or loop.time() + grace_s < self._kill_at.when():
            if self._kill_at is not None:
                self._kill_at.cancel()
            self._kill_at = loop.call_later(grace_s, self._kill)

    def _kill(self) -> None:
        if not self._kill_now.done():
            self._kill_now.set_result(None)

    def _on_over_limit(self, rss_bytes: int) -> None:
        self._request_stop("memory_limit", 0, rss_bytes)

    # --- the attempt ----------------------------------------------------------------------------

    async def _run(self) -> AttemptResult:
        try:
            temp_dir = self._shop.temp_dirs.take()
        except OSError as error:
            return self._not_started(f"no temp directory: {error}")
        try:
            for _ in range(PROCESS_TRIES - 1):
                result = await self._run_in(await self._take_process(), temp_dir)
                if not self._never_ran(result):
                    return result
            return await self._run_in(await self._take_process(), temp_dir)
        except ForkRefused as refused:
            return self._not_started(str(refused))
        finally:
            self._close()
            await self._shop.temp_dirs.give_back(temp_dir)

    async def _take_process(self) -> JobProcessHandle:
        self._process = await self._shop.pool.take(self.plan.lane)
        self._pid = self._process.pid
        self._forked_ns = self._clock.monotonic_ns()
        return self._process

    def _never_ran(self, result: AttemptResult) -> bool:
        """Whether the process died before it entered the function, so that no harm is done.

        An idle process may be killed, by the kernel or by hand, in the moment it is taken.
        """
        return isinstance(result.ending, Died) and self._ran_ns is None and self._stop is None

    async def _run_in(self, process: JobProcessHandle, temp_dir: str) -> AttemptResult:
        masker = self.plan.secrets.masker()
        pump = LogPump(
            lambda: self._shop.state_dir.attempt_log(self.plan.job_id, self.plan.attempt),
            LogRules(
                self.plan.limits.log_bytes,
                self._observer.may_write,
                self._observer.on_log_growth,
                None if masker is None else StreamMasker(masker),
            ),
        )
        watched = Watched(process, self.plan.limits.memory_bytes, self._on_over_limit)
        self._begin(process, pump, temp_dir)
        self._shop.sampler.watch(watched)
        ended = await self._until_over(process)
        # From here the process may already run another attempt, which a late cancel of this one
        # must not hit (trap 5).
        self._process = None
        self._shop.sampler.forget(watched)
        kill = await self._leave_nothing(process, ended)
        log = await pump.finish()
        exit_ = process.exit.result() if process.exit.done() else None
        usage = usage_of(process, watched, ended, exit_)
        ending = self._ending(process, ended, exit_)
        if exit_ is not None:
            self._shop.factory.bury(process)
        return AttemptResult(ending, usage, self._timeline(ended), log, process.pid, kill)

    def _begin(self, process: JobProcessHandle, pump: LogPump, temp_dir: str) -> None:
        limits = self.plan.limits
        if limits.memory_bytes is not None and process.cgroup is not None:
            process.cgroup.limit_memory(limits.memory_bytes)
        log = pump.open()
        try:
            process.begin(self._start_message(process, temp_dir), log, self._on_message)
        finally:
            os.close(log)
        if self._stop is not None:
            # Cancelled while it waited for its process.
            process.send_signal(signal.SIGTERM)
        if limits.timeout_s is not None:
            self._timers.append(
                asyncio.get_running_loop().call_later(
                    limits.timeout_s, self._request_stop, "timed_out", limits.grace_s
                )
            )

    def _start_message(self, process: JobProcessHandle, temp_dir: str) -> Start:
        plan, files = self.plan, self._shop.state_dir
        return Start(
            job_id=plan.job_id,
            attempt=plan.attempt,
            operation=plan.operation,
            lane=plan.lane,
            request=plan.request,
            env=dict(plan.env),
            config=dict(plan.config),
            labels=dict(plan.labels),
            secrets=plan.secrets,
            target=plan.target,
            keep_result=plan.keep_result,
            result_limit_bytes=plan.limits.result_bytes,
            artifact_limit_bytes=plan.limits.artifact_bytes,
            temp_dir=temp_dir,
            # As text: joining paths took longer than all else that is sent here.
            work_dir=f"{self._shop.work_dir}/{plan.job_id}",
            artifact_dir=f"{files.artifacts}/{plan.job_id}/{plan.attempt}",
            debug_log=str(files.attempt_debug_log(plan.job_id, plan.attempt)),
            reuse=plan.lane is Lane.SHORT,
        )

    async def _until_over(self, process: JobProcessHandle) -> Ended | None:
        """Wait for the answer, the death or the order to kill, whatever comes first."""
        await _first_of(process.ended, process.exit, self._kill_now)
        if process.ended.cancelled() and not process.exit.done() and not self._kill_now.done():
            # It closed its socket: dying, as a rule.
            rest = (process.exit, self._kill_now)
            await asyncio.wait(rest, timeout=HANG_UP_LIMIT_S, return_when=asyncio.FIRST_COMPLETED)
            if process.is_dead():
                # How it died is still on its way; killing it would be told as the cause.
                await asyncio.wait(rest, return_when=asyncio.FIRST_COMPLETED)
        if process.ended.done() and not process.ended.cancelled():
            return process.ended.result()
        return None

    async def _leave_nothing(
        self, process: JobProcessHandle, ended: Ended | None
    ) -> KillReport | None:
        """Give a warm process back, or see the whole tree dead."""
        clean = ended is not None and not ended.descendants and self._stop is None
        if clean and self.plan.lane is Lane.SHORT and ended is not None:
            if self._shop.pool.can_reuse(process, ended):
                self._shop.pool.give_back(process)
            else:
                self._shop.pool.retire(process)
                process.exit.add_done_callback(lambda _: self._shop.factory.bury(process))
            return None
        began_ns = self._stop.began_ns if self._stop else self._clock.monotonic_ns()
        obeyed = ended is not None or (process.exit.done() and not self._kill_now.done())
        if ended is not None and not ended.descendants:
            # A warm one would wait for its next attempt.
            process.dismiss()
            dead = await wait_dead(process)
            if clean and dead and self._shop.factory.jobs_reap:
                return None
        killed, survivors = await self._shop.factory.killer.kill(process)
        if self._stop is None and not killed:
            return None
        return KillReport(
            reason=self._stop.reason if self._stop else "left_over",
            means=self._shop.factory.killer.means,
            obeyed=obeyed,
            main_pid=process.pid,
            killed=killed,
            survivors=survivors,
            duration_s=s_from_ns(self._clock.monotonic_ns() - began_ns),
        )

    # --- what the job says ----------------------------------------------------------------------

    def _on_message(self, message: FromJob) -> None:
        match message:
            case Entered(at_ns):
                self._ran_ns = at_ns
                self._observer.on_started(self._pid or 0)
            case ProgressMade(fraction, text, numbers):
                self._progress.put(Progress(fraction, text, numbers))
            case ArtifactMade(artifact):
                self._observer.on_artifact(artifact)
            case ResultChunk(data):
                self._result.add(data)

    # --- the result -----------------------------------------------------------------------------

    def _ending(self, process: JobProcessHandle, ended: Ended | None, exit_: Exit | None) -> Ending:
        stopped = None if self._stop is None else self._stop.ending(self.plan.limits)
        if ended is None:
            return stopped or death(process.cgroup, exit_, self._shop.sampler)
        if isinstance(ended.verdict, GaveResult):
            return self._succeeded(ended.verdict.size_bytes)
        return told(ended.verdict, stopped)

    def _succeeded(self, size_bytes: int | None) -> Ending:
        try:
            return self._result.complete(size_bytes)
        except OSError as error:
            text = f"the result could not be stored: {error.strerror}"
            return Raised(ErrorInfo(type="ResultNotStored", message=text), retry=False)

    def _timeline(self, ended: Ended | None) -> Timeline:
        return Timeline(
            claimed_ns=self.plan.claimed_ns,
            requested_ns=self._requested_ns,
            forked_ns=self._forked_ns,
            ran_ns=self._ran_ns,
            returned_ns=ended.returned_ns if ended else None,
            ended_ns=self._clock.monotonic_ns(),
        )

    def _not_started(self, reason: str) -> AttemptResult:
        return AttemptResult(NotStarted(reason), Usage(), self._timeline(None), LogSummary())

    def _close(self) -> None:
        self._progress.close()
        self._result.discard()
        for timer in self._timers:
            timer.cancel()
        if self._kill_at is not None:
            self._kill_at.cancel()


async def _first_of(*events: asyncio.Future[Any]) -> None:
    """Wait until one is done. What `asyncio.wait` does with sets takes several times as long."""
    first: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def tell(_: asyncio.Future[Any]) -> None:
        if not first.done():
            first.set_result(None)

    for event in events:
        event.add_done_callback(tell)
    try:
        await first
    finally:
        for event in events:
            event.remove_done_callback(tell)
