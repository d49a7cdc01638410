"""One attempt from its claim to its stored end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Protocol

import msgspec

from headway.core.clock import Clock, s_from_ns
from headway.core.errors import StoreUnavailable
from headway.core.failure import ErrorInfo
from headway.core.statedir import StateDir
from headway.core.states import Lane
from headway.dispatch.briefing import NOTHING_MORE, Briefing, Briefings, needs_briefing
from headway.dispatch.decision import Decider
from headway.dispatch.doorbell import Doorbell, job_topic, log_topic
from headway.dispatch.leases import LeaseKeeper
from headway.dispatch.metrics import AttemptMetrics
from headway.dispatch.progress_history import ProgressHistory
from headway.execution.attempt import (
    AttemptObserver,
    AttemptPlan,
    AttemptResult,
    Died,
    KillReport,
    Limits,
    LogSummary,
    Progress,
    Raised,
    Succeeded,
    Timeline,
    Usage,
)
from headway.jobs.artifacts import Artifact
from headway.store import jobs as stored
from headway.store.attempts import AttemptEnd, ClaimedJob, Finish
from headway.store.events import EventKind
from headway.store.jobs import JobRow
from headway.store.store import Store

_log = logging.getLogger(__name__)

_PROGRESS_GAP_S = 0.1
"""Between two writes of progress: a tight loop that reports each step must not own the store."""
_STORE_RETRY_S = 0.25


class RunningAttempt(Protocol):
    """What a supervisor gives for an attempt that it has begun."""

    async def wait(self) -> AttemptResult: ...

    async def cancel(
        self, grace_s: float | None = None, reason: str = "cancelled"
    ) -> KillReport | None: ...


class Supervisor(Protocol):
    """Whatever runs attempts: job processes, or the inline lane."""

    async def start(
        self, plan: AttemptPlan, observer: AttemptObserver | None = None
    ) -> RunningAttempt: ...


class Stop(IntEnum):
    """Why an attempt is stopped; a later reason counts when it is stronger."""

    NO = 0
    CANCEL = 1
    """Somebody asked for it."""
    DRAIN = 2
    """This worker ends; the job goes back to the queue."""
    LOST = 3
    """It is no longer the current attempt: kill it and write nothing."""


@dataclass(frozen=True, slots=True)
class RunServices:
    """What every attempt of a dispatcher shares."""

    store: Store
    supervisor: Supervisor
    doorbell: Doorbell
    leases: LeaseKeeper
    decider: Decider
    metrics: AttemptMetrics
    clock: Clock
    state_dir: StateDir
    log_bytes: int | None = None
    result_bytes: int | None = None
    briefings: Briefings | None = None


class AttemptRun:
    """Runs one claimed job; the supervisor tells it what happens (`AttemptObserver`).

    Args:
        claimed: The job.
        services: The dispatcher's.
        on_slot_free: Called once, when the attempt's processes are gone.
    """

    def __init__(
        self, claimed: ClaimedJob, services: RunServices, on_slot_free: Callable[[], None]
    ) -> None:
        self.claimed = claimed
        self._services = services
        self._on_slot_free = on_slot_free
        self._lease = services.leases.hold(claimed, self._lose)
        self._stop = Stop.NO
        self._stop_grace_s: float | None = None
        self._attempt: RunningAttempt | None = None
        self._progress: Progress | None = None
        self._progress_stored: Progress | None = None
        self._history: ProgressHistory | None = None
        self._writes: set[asyncio.Task[Any]] = set()
        self._recordings: set[asyncio.Task[Any]] = set()
        self._progress_task: asyncio.Task[None] | None = None
        self._kept_bytes = 0

    async def run(self) -> None:
        """Run the attempt and store its end; never raises for the job's sake."""
        self._services.metrics.started(self.claimed)
        # Nobody waits for a job to begin as they wait for its end.
        self._services.doorbell.ring_later(job_topic(self.claimed.job.id))
        try:
            await self._run()
        except Exception as error:  # noqa: BLE001 - our bug; the job must not stay RUNNING for it
            _log.exception("job %s: attempt %d broke off", *self._named())
            await self._store_broken_off(error)
        finally:
            self._free_slot()
            self._services.leases.drop(self.claimed.claim)
            for task in self._writes:
                task.cancel()

    async def _run(self) -> None:
        briefing = await self._briefing()
        if isinstance(briefing, ErrorInfo):
            await self._store_end(self._refused(briefing))
            return
        self._attempt = await self._services.supervisor.start(self._plan(briefing), self)
        if self._stop is not Stop.NO:
            self._begin_stop(self._attempt)
        result = await self._attempt.wait()
        # Whoever claims for the slot wakes when this task waits for the store: so the end is in the
        # store's queue first, and the claim that follows shares its commit.
        self._free_slot()
        await self._store_end(result)

    async def _briefing(self) -> Briefing | ErrorInfo:
        """What the attempt is given besides its payload, or why it cannot run any more."""
        if not needs_briefing(self.claimed.payload):
            return NOTHING_MORE
        if self._services.briefings is None:
            return ErrorInfo(type="ConfigError", message="this worker gives out no secrets")
        return await self._services.briefings.of(self.claimed)

    def _refused(self, error: ErrorInfo) -> AttemptResult:
        """The result of an attempt that was not begun, because it would fail again and again."""
        now_ns = self._services.clock.monotonic_ns()
        timeline = Timeline(None, now_ns, None, None, None, now_ns)
        return AttemptResult(Raised(error, retry=False), Usage(), timeline, LogSummary())

    def stop(self, reason: Stop, grace_s: float | None = None) -> None:
        """Stop the attempt.

        Args:
            reason: See `Stop`.
            grace_s: Seconds until it is killed; None: the job's own.
        """
        if reason < self._stop:
            return
        self._stop, self._stop_grace_s = reason, grace_s
        if self._attempt is not None:
            self._begin_stop(self._attempt)

    def _free_slot(self) -> None:
        on_slot_free, self._on_slot_free = self._on_slot_free, _nothing
        on_slot_free()

    # --- AttemptObserver ---

    def may_write(self) -> bool:
        return self._lease.holds()

    def on_started(self, pid: int) -> None:
        """The claim has been told already; the process id stands in the debug log."""

    def on_progress(self, progress: Progress) -> None:
        self._progress = progress
        if self._progress_task is None:
            self._progress_task = self._write(self._write_progress())

    def on_artifact(self, artifact: Artifact) -> None:
        self._kept_bytes += artifact.size_bytes
        recording = self._write(self._record(artifact))
        self._recordings.add(recording)
        recording.add_done_callback(self._recordings.discard)

    def on_log_growth(self, size_bytes: int) -> None:
        claim = self.claimed.claim
        self._services.doorbell.ring(log_topic(claim.job_id, claim.attempt))

    # --- stopping ---

    def _lose(self) -> None:
        self._services.metrics.lease_lost()
        self.stop(Stop.LOST, grace_s=0)

    def _begin_stop(self, attempt: RunningAttempt) -> None:
        reason = {Stop.DRAIN: "closing", Stop.LOST: "lease_lost"}.get(self._stop, "cancelled")
        self._write(attempt.cancel(self._stop_grace_s, reason))

    # --- the end ---

    async def _store_end(self, result: AttemptResult) -> None:
        if self._stop is Stop.LOST:
            return
        self._lease.end()
        end = self._end(result)
        self._services.metrics.ended(self.claimed, result, end)
        if result.kill is not None:
            report = msgspec.json.encode(result.kill.as_event()).decode()
            self._write(self._add_event(EventKind.KILLED, report))
        await self._settle_progress()
        if self._recordings:
            await asyncio.wait(self._recordings)
        row = await self._persist(end)
        if row is None:
            _log.warning("job %s: the end of attempt %d was refused", *self._named())
        self._services.doorbell.ring(job_topic(self.claimed.job.id))

    async def _store_broken_off(self, error: Exception) -> None:
        """End the attempt as a crash: given back, it would break off again for ever (trap 25a)."""
        died = Died(None, None, f"Headway failed to run it: {type(error).__name__}: {error}")
        if self._stop is not Stop.LOST:
            await self._persist(self._services.decider.decide(self.claimed, died, draining=False))
        self._services.doorbell.ring(job_topic(self.claimed.job.id))

    def _end(self, result: AttemptResult) -> AttemptEnd:
        # Whatever stopped it: nobody asked for its cancel, so it is given back.
        draining = self._stop is not Stop.CANCEL
        end = self._services.decider.decide(self.claimed, result.ending, draining)
        if isinstance(end, Finish) and end.result is not None and not self._keeps_result():
            end = msgspec.structs.replace(end, result=None)
        return msgspec.structs.replace(
            end,
            usage=self._usage(result),
            kept_bytes=self._kept_bytes + result.log.size_bytes + _result_bytes(result),
        )

    def _keeps_result(self) -> bool:
        return self.claimed.payload.keep_result

    def _usage(self, result: AttemptResult) -> stored.Usage:
        return stored.Usage(
            peak_rss_bytes=result.usage.peak_rss_bytes,
            cpu_s=result.usage.cpu_s,
            timeline=_utc_timeline(result.timeline, self._services.clock),
        )

    async def _persist(self, end: AttemptEnd) -> JobRow | None:
        """Store the end; as long as the store is unavailable, try again."""
        while True:
            try:
                return await self._services.store.end_attempt(self.claimed.claim, end)
            except StoreUnavailable as error:
                _log.warning("job %s: attempt %d cannot be ended yet: %s", *self._named(), error)
                await asyncio.sleep(_STORE_RETRY_S)

    # --- what is written on the way ---

    def _write(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        return task

    async def _record(self, artifact: Artifact) -> None:
        """Store that an artifact is there: without its event nobody gets to see it."""
        data_json = msgspec.json.encode(artifact).decode()
        while self._stop < Stop.LOST:
            if await self._add_event(EventKind.ARTIFACT, data_json):
                return
            await asyncio.sleep(_STORE_RETRY_S)

    async def _add_event(self, kind: str, data_json: str) -> bool:
        """Write to the job's history; False when the store was not there to answer."""
        try:
            await self._services.store.add_event(self.claimed.claim, kind, data_json)
            return True
        except StoreUnavailable as error:
            _log.warning("job %s: the event %s was not stored: %s", self._named()[0], kind, error)
            return False

    async def _write_progress(self) -> None:
        """Store the newest progress; again while newer comes."""
        while (progress := self._progress) is not self._progress_stored:
            await self._store_progress(progress)
            await asyncio.sleep(_PROGRESS_GAP_S)
        self._progress_task = None

    async def _store_progress(self, progress: Progress | None) -> None:
        assert progress is not None
        kept = stored.Progress(
            fraction=progress.fraction, message=progress.message, numbers=progress.numbers
        )
        try:
            if await self._services.store.progress(self.claimed.claim, kept):
                self._keep_progress(kept)
            self._progress_stored = progress
        except StoreUnavailable as error:
            _log.warning("job %s: progress was not stored: %s", self._named()[0], error)
        self._services.doorbell.ring(job_topic(self.claimed.job.id))

    def _keep_progress(self, progress: stored.Progress) -> None:
        if self._history is None:
            claim = self.claimed.claim
            path = self._services.state_dir.attempt_progress(claim.job_id, claim.attempt)
            self._history = ProgressHistory(path, self._services.clock)
        self._history.add(progress)

    async def _settle_progress(self) -> None:
        """Let nothing written on the way come after the end: it would be refused as stale."""
        if self._progress_task is not None:
            self._progress_task.cancel()
        if self._progress is not self._progress_stored:
            self._write(self._store_progress(self._progress))
        if self._writes:
            await asyncio.sleep(0)  # let them reach the store's queue, which keeps its order

    def _plan(self, briefing: Briefing) -> AttemptPlan:
        job, payload = self.claimed.job, self.claimed.payload
        limits = Limits(timeout_s=job.timeout_s, memory_bytes=payload.memory_limit_bytes)
        if payload.grace_s is not None:
            limits = replace(limits, grace_s=payload.grace_s)
        if self._services.log_bytes is not None:
            limits = replace(limits, log_bytes=self._services.log_bytes)
        if self._services.result_bytes is not None:
            limits = replace(limits, result_bytes=self._services.result_bytes)
        return AttemptPlan(
            job_id=job.id,
            attempt=self.claimed.claim.attempt,
            operation=job.operation,
            lane=Lane(job.lane),
            request=payload.input_json.encode(),
            env=payload.env,
            config=msgspec.json.decode(payload.config_json),
            labels=job.labels,
            secrets=briefing.secrets,
            target=briefing.target,
            limits=limits,
            keep_result=payload.keep_result,
            claimed_ns=self._services.clock.monotonic_ns(),
        )

    def _named(self) -> tuple[str, int]:
        return self.claimed.claim.job_id, self.claimed.claim.attempt


def _nothing() -> None:
    """The slot is free already."""


def _result_bytes(result: AttemptResult) -> int:
    """Size of a result that is kept in a file; the store counts those it keeps itself."""
    ending = result.ending
    if isinstance(ending, Succeeded) and ending.result_file is not None:
        return ending.result_bytes
    return 0


def _utc_timeline(timeline: Timeline, clock: Clock) -> dict[str, float]:
    """Phases as UTC seconds since the epoch, so that they can stand beside other records."""
    offset_s = clock.now().timestamp() - s_from_ns(clock.monotonic_ns())
    phases = {
        "claimed": timeline.claimed_ns,
        "requested": timeline.requested_ns,
        "forked": timeline.forked_ns,
        "ran": timeline.ran_ns,
        "returned": timeline.returned_ns,
        "ended": timeline.ended_ns,
    }
    return {
        phase: round(offset_s + s_from_ns(at_ns), 6)
        for phase, at_ns in phases.items()
        if at_ns is not None
    }
