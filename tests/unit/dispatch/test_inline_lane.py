"""The inline lane, and with it the dispatcher: real store, real event loop, real threads."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headway.core.retry import RetryPolicy
from headway.core.statedir import StateDir
from headway.core.states import JobState, Outcome, WaitReason
from headway.dispatch.doorbell import CANCEL
from headway.dispatch.inline_lane import Admission, Busy, InlineLane, InlineSettings
from headway.dispatch.lane_host import LaneHost
from headway.jobs import JobCancelled, Retry, current_job
from headway.jobs.operation import Operation
from headway.jobs.registry import Registry
from headway.store.jobs import CancelResult
from headway.store.submissions import NewJob

Until = Callable[[Callable[[], bool]], Awaitable[None]]


class Gate:
    """Holds functions until the test lets them go, and remembers who came."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self.go = threading.Event()

    def hold(self, job: Any) -> None:
        self.entered.append(job.id)
        assert self.go.wait(20)


async def add(job, a: int, b: int) -> int:  # type: ignore[no-untyped-def]
    return a + b


def who(job, name: str) -> dict[str, Any]:  # type: ignore[no-untyped-def]
    print(f"I am {name}")
    print("and I complain", file=sys.stderr)
    job.log.debug("a detail of %s", name)
    job.progress(0.5, "half", seen=1)
    job.artifact("note.txt", b"kept")
    (job.temp_dir / "scratch").write_text("x")
    assert current_job().id == job.id
    return {"env": job.env.get("APP_NAME"), "thread": threading.current_thread().name}


async def forever(job) -> None:  # type: ignore[no-untyped-def]
    try:
        await asyncio.sleep(3600)
    except JobCancelled:
        print("told to stop")
        raise


async def again(job) -> int:  # type: ignore[no-untyped-def]
    if job.attempt == 1:
        raise Retry(after_s=0.05, reason="not yet")
    return int(job.attempt)


def raising(job, kind: str) -> None:  # type: ignore[no-untyped-def]
    raise {"exit": SystemExit, "interrupt": KeyboardInterrupt, "error": ValueError}[kind]("gone")


async def raising_async(job, kind: str) -> None:  # type: ignore[no-untyped-def]
    raising(job, kind)


@pytest.fixture
def gate() -> Any:
    gate = Gate()
    yield gate
    gate.go.set()


@pytest.fixture
def registry(gate: Gate) -> Registry:
    registry = Registry()

    def hold(job) -> None:  # type: ignore[no-untyped-def]
        gate.hold(job)

    for function in (add, who, forever, again, raising, raising_async, hold):
        registry.add(Operation(name=function.__name__, function=function, grace_s=0.2))
    return registry


@pytest.fixture
async def lane(host: LaneHost, registry: Registry) -> AsyncIterator[InlineLane]:
    lane = InlineLane(host, registry, InlineSettings(limit=4, lease_s=2.0))
    await lane.open()
    yield lane
    await lane.close()


@asynccontextmanager
async def open_lane(host: LaneHost, registry: Registry) -> AsyncIterator[InlineLane]:
    """A lane that opens within the test: pytest changes `sys.stdout` after the fixtures."""
    lane = InlineLane(host, registry, InlineSettings(limit=4))
    await lane.open()
    try:
        yield lane
    finally:
        await lane.close()


def job(operation: str, input_json: str = "{}", **options: Any) -> NewJob:
    return NewJob(operation=operation, lane="inline", input_json=input_json, grace_s=0.2, **options)


async def test_async_and_sync_functions_run_and_keep_their_results(lane: Any, jobs: Any) -> None:
    one, two = await jobs.submit(
        job("add", '{"a": 2, "b": 3}'), job("who", '{"name": "x"}', env={"APP_NAME": "ann"})
    )
    assert (await jobs.ended(one)).state is JobState.SUCCEEDED
    assert (await jobs.store.result(one)).json == "5"
    ended = await jobs.ended(two)
    assert ended.progress.message == "half"
    result = (await jobs.store.result(two)).json
    assert '"env":"ann"' in result
    assert f"inline-{two}" in result


async def test_each_attempt_has_its_own_log_and_the_servers_stays_clean(
    host: LaneHost, registry: Registry, jobs: Any, state_dir: StateDir,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """J4: per-job context for log and env without touching the process's own."""
    async with open_lane(host, registry):
        ids = await jobs.submit(*[job("who", f'{{"name": "n{n}"}}') for n in range(4)])
        print("the server speaks")
        for job_id in ids:
            await jobs.ended(job_id)
    for n, job_id in enumerate(ids):
        log = state_dir.attempt_log(job_id, 1).read_text()
        assert log == f"I am n{n}\nand I complain\n"
        assert f"a detail of n{n}" in state_dir.attempt_debug_log(job_id, 1).read_text()
        assert (state_dir.job_artifacts(job_id) / "1" / "note.txt").read_bytes() == b"kept"
        assert not state_dir.attempt_tmp(job_id, 1).exists()
        assert "artifact" in [event.kind for event in await jobs.store.events(job_id)]
    assert capsys.readouterr().out == "the server speaks\n"


async def test_output_is_given_back_when_the_lane_closes(host: LaneHost) -> None:
    before = sys.stdout, sys.stderr
    lane = InlineLane(host, Registry())
    await lane.open()
    assert sys.stdout is not before[0]
    await lane.close()
    await lane.close()
    assert (sys.stdout, sys.stderr) == before


@pytest.mark.parametrize("operation", ["raising", "raising_async"])
@pytest.mark.parametrize("kind", ["exit", "interrupt", "error"])
async def test_nothing_that_a_job_raises_ends_the_loop(
    lane: Any, jobs: Any, operation: str, kind: str
) -> None:
    """Trap 8: a pool that caught Exception but not SystemExit never resolved its future."""
    bad, good = await jobs.submit(
        job(operation, f'{{"kind": "{kind}"}}'), job("add", '{"a": 1, "b": 1}')
    )
    ended = await jobs.ended(bad)
    assert (ended.state, ended.outcome) == (JobState.FAILED, Outcome.FAILED)
    assert ended.error.message == "gone"
    assert ended.error.traceback
    assert (await jobs.ended(good)).state is JobState.SUCCEEDED


async def test_a_full_lane_refuses_instead_of_queueing_in_silence(
    lane: InlineLane, jobs: Any, gate: Gate, until: Until
) -> None:
    """J4: 128 on demand, then 503 + Retry-After."""
    ids = []
    for _ in range(4):
        admission = lane.admit(1)
        assert isinstance(admission, Admission)
        with admission:
            ids += await jobs.submit(job("hold"))
    assert isinstance(lane.admit(1), Busy)
    await until(lambda: len(gate.entered) == 4)
    refused = lane.admit(1)
    assert isinstance(refused, Busy)
    assert refused.retry_after_s > 0
    gate.go.set()
    for job_id in ids:
        assert (await jobs.ended(job_id)).state is JobState.SUCCEEDED
    await until(lambda: isinstance(admitted := lane.admit(4), Admission) and _leave(admitted))


def _leave(admission: Admission) -> bool:
    with admission:
        return True


async def test_a_failed_submission_gives_its_places_back(lane: InlineLane) -> None:
    for _ in range(10):
        admission = lane.admit(4)
        assert isinstance(admission, Admission)
        with pytest.raises(ValueError, match="no"), admission:
            raise ValueError("no")


async def test_a_cancel_is_noticed_at_once(
    host: LaneHost, registry: Registry, jobs: Any, state_dir: StateDir
) -> None:
    async with open_lane(host, registry):
        (job_id,) = await jobs.submit(job("forever"))
        await jobs.until(job_id, lambda row: row.state is JobState.RUNNING)
        assert await jobs.store.request_cancel(job_id, "ann") is CancelResult.REQUESTED
        jobs.doorbell.ring(CANCEL)
        assert (await jobs.ended(job_id)).outcome is Outcome.CANCELLED
    assert state_dir.attempt_log(job_id, 1).read_text() == "told to stop\n"


async def test_a_thread_that_does_not_heed_a_cancel_keeps_its_place_but_not_its_job(
    lane: InlineLane, jobs: Any, gate: Gate, until: Until
) -> None:
    (job_id,) = await jobs.submit(job("hold"))
    await until(lambda: bool(gate.entered))
    await jobs.store.request_cancel(job_id, "ann")
    jobs.doorbell.ring(CANCEL)
    assert (await jobs.ended(job_id)).outcome is Outcome.CANCELLED
    assert isinstance(lane.admit(4), Busy)
    gate.go.set()
    await until(lambda: isinstance(admitted := lane.admit(4), Admission) and _leave(admitted))
    assert (await jobs.get(job_id)).outcome is Outcome.CANCELLED


async def test_a_time_limit_ends_an_async_job(lane: Any, jobs: Any) -> None:
    (job_id,) = await jobs.submit(job("forever", timeout_s=0.1))
    ended = await jobs.ended(job_id)
    assert ended.outcome is Outcome.TIMED_OUT
    assert "0.1 s" in ended.error.message


async def test_a_retry_runs_again(lane: Any, jobs: Any) -> None:
    """Trap 1, J7."""
    (job_id,) = await jobs.submit(job("again", retry=RetryPolicy(max_attempts=2)))
    ended = await jobs.ended(job_id)
    assert (ended.state, ended.attempt) == (JobState.SUCCEEDED, 2)
    kinds = [event.kind for event in await jobs.store.events(job_id)]
    assert kinds == ["submitted", "claimed", "retry", "ready", "claimed", "ended"]


async def test_a_retry_without_attempts_left_fails_with_its_reason(lane: Any, jobs: Any) -> None:
    (job_id,) = await jobs.submit(job("again"))
    ended = await jobs.ended(job_id)
    assert (ended.state, ended.outcome) == (JobState.FAILED, Outcome.FAILED)
    assert "not yet" in ended.error.message


@pytest.mark.parametrize(
    ("operation", "input_json", "text"),
    [("nothing", "{}", "no operation nothing"), ("add", '{"a": 1}', "b")],
)
async def test_a_job_that_cannot_be_called_fails_with_the_reason(
    lane: Any, jobs: Any, operation: str, input_json: str, text: str
) -> None:
    (job_id,) = await jobs.submit(job(operation, input_json))
    ended = await jobs.ended(job_id)
    assert ended.state is JobState.FAILED
    assert text in ended.error.message


async def test_a_result_too_large_for_a_row_goes_to_a_file(
    host: LaneHost, jobs: Any, state_dir: StateDir
) -> None:
    def big(job) -> str:  # type: ignore[no-untyped-def]
        return "x" * 1_000_000

    registry = Registry()
    registry.add(Operation(name="big", function=big))
    lane = InlineLane(host, registry)
    await lane.open()
    (job_id,) = await jobs.submit(job("big"))
    await jobs.ended(job_id)
    result = await jobs.store.result(job_id)
    assert result.json is None
    assert (state_dir.root / result.file).stat().st_size == 1_000_002
    await lane.close()


async def test_closing_gives_running_jobs_back_uncounted(
    host: LaneHost, registry: Registry, jobs: Any
) -> None:
    """J18: and a new lane runs them; start and stop work repeatedly in one process."""
    job_id = None
    for attempt in (1, 2, 3):
        lane = InlineLane(host, registry, InlineSettings(limit=4))
        await lane.open()
        if job_id is None:
            (job_id,) = await jobs.submit(job("forever"))
        await jobs.until(
            job_id, lambda row, n=attempt: row.state is JobState.RUNNING and row.attempt == n
        )
        await lane.close(limit_s=0.0)
        row = await jobs.get(job_id)
        assert (row.state, row.released) == (JobState.PENDING, attempt)
        assert row.wait_reason is WaitReason.QUEUED


async def test_closing_lets_quick_jobs_finish(
    host: LaneHost, registry: Registry, jobs: Any, gate: Gate, until: Until
) -> None:
    lane = InlineLane(host, registry, InlineSettings(limit=4))
    await lane.open()
    (job_id,) = await jobs.submit(job("hold"))
    await until(lambda: bool(gate.entered))
    closing = asyncio.create_task(lane.close(limit_s=20.0))
    await asyncio.sleep(0)
    (late,) = await jobs.submit(job("add", '{"a": 1, "b": 1}'))
    gate.go.set()
    await closing
    assert (await jobs.get(job_id)).state is JobState.SUCCEEDED
    assert (await jobs.get(late)).state is JobState.PENDING


async def test_losing_every_ring_costs_latency_only(lane: Any, jobs: Any) -> None:
    (row,) = await jobs.store.submit([job("add", '{"a": 1, "b": 1}')])
    assert (await jobs.ended(row.job.id)).state is JobState.SUCCEEDED


async def test_a_lost_lease_stops_the_attempt_and_writes_nothing(
    lane: Any, jobs: Any, host: LaneHost, until: Until
) -> None:
    """J5: whoever is refused stops itself."""
    (job_id,) = await jobs.submit(job("forever"))
    await jobs.until(job_id, lambda row: row.state is JobState.RUNNING)
    await jobs.store.rescue([lane.owner])
    lost = await jobs.ended(job_id)
    assert lost.outcome is Outcome.WORKER_LOST
    await until(lambda: b"headway_leases_lost_total 1.0" in host.metrics.exposition())
    assert await jobs.get(job_id) == lost


async def test_the_temp_directories_of_a_killed_server_are_removed(
    host: LaneHost, registry: Registry, state_dir: StateDir
) -> None:
    """J12, after kill -9 of the API; those of workers are the workers' business."""
    stale = state_dir.attempt_tmp("01abc", 1)
    (stale / "deep").mkdir(parents=True)
    (stale / "deep" / "scratch").write_text("x")
    others = state_dir.tmp / "worker-1.2"
    others.mkdir()
    async with open_lane(host, registry):
        assert list(state_dir.tmp.iterdir()) == [others]
