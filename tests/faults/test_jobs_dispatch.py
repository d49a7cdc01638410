"""Killed, stopped and drained workers: real worker processes, real job processes, real SQLite.

After each fault: no job lost, none stuck, none with two outcomes, no process left behind.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from headway.core.clock import SystemClock
from headway.core.errors import ConfigError
from headway.core.retry import RetryPolicy
from headway.core.statedir import StateDir
from headway.core.states import JobState, Outcome
from headway.dispatch.doorbell import CANCEL, WORK, job_topic
from headway.dispatch.metrics_socket import read_worker_metrics
from headway.dispatch.unix_doorbell import UnixDoorbell
from headway.dispatch.worker_process import WorkerProcess
from headway.dispatch.worker_settings import WorkerSettings
from headway.store.jobs import CancelResult, JobQuery, JobRow
from headway.store.sqlite.store import SqliteStore
from headway.store.submissions import NewJob

pytestmark = pytest.mark.timeout(120)

LIMIT_S = 60.0
RETRYABLE = RetryPolicy(max_attempts=20, retryable=True, quarantine_after=10, backoff_s=0.05)

OPERATIONS = '''
import os, subprocess, sys, time
from pathlib import Path
from headway.jobs import Retry, operation

@operation(lane="long")
def hold(job, seconds: float = 60.0) -> int:
    """Says who it is, then works until its time is over; later attempts are short."""
    print(os.getpid(), flush=True)
    time.sleep(seconds if job.attempt == 1 else 0)
    return job.attempt

@operation(lane="long")
def brood(job) -> None:
    """Leaves a grandchild in a session of its own."""
    child = subprocess.Popen(["sleep", "300"], start_new_session=True)
    print(os.getpid(), child.pid, flush=True)
    time.sleep(60)

@operation(lane="long")
def die(job, how: str = "exit") -> None:
    if how == "exit":
        os._exit(3)
    os.kill(os.getpid(), 9)

@operation(lane="long")
def until_file(job, path: str) -> int:
    """Runs until a file is there."""
    while not Path(path).exists():
        time.sleep(0.02)
    return job.attempt

@operation(lane="short")
def mark(job, directory: str) -> None:
    """Leaves one trace for each time it runs."""
    with open(os.path.join(directory, job.id), "a") as file:
        file.write("x")

@operation(lane="long")
def again(job) -> int:
    if job.attempt < 3:
        raise Retry(after_s=0.05, reason="not yet")
    return job.attempt
'''


class House:
    """A store and a doorbell as an API process has them, and workers beside it."""

    def __init__(self, root: Path) -> None:
        self.state_dir = StateDir(root / "state")
        self.operations = root / "ops.py"
        self.operations.write_text(OPERATIONS)
        self.store = SqliteStore(self.state_dir, SystemClock(), random.Random(1))
        self.doorbell = UnixDoorbell(self.state_dir)
        self.workers: list[WorkerProcess] = []

    def settings(self, **options: Any) -> WorkerSettings:
        values = {"drain_s": 20.0, "drain_grace_s": 0.5} | options
        return WorkerSettings(
            state_dir=self.state_dir.root, operations=(str(self.operations),), **values
        )

    async def worker(self, **options: Any) -> WorkerProcess:
        worker = WorkerProcess(self.settings(**options), SystemClock())
        self.workers.append(worker)
        await worker.start()
        return worker

    async def submit(self, operation: str, count: int = 1, **options: Any) -> list[str]:
        lane = options.pop("lane", "long")
        job = NewJob(operation=operation, lane=lane, **{"input_json": "{}"} | options)
        submitted = await self.store.submit([job] * count)
        assert isinstance(submitted, list)
        self.doorbell.ring(WORK)
        return [each.job.id for each in submitted]

    async def get(self, job_id: str) -> JobRow:
        row = await self.store.find(job_id)
        assert isinstance(row, JobRow)
        return row

    async def until(self, job_id: str, holds: Callable[[JobRow], bool]) -> JobRow:
        async with asyncio.timeout(LIMIT_S):
            with self.doorbell.listen(job_topic(job_id)) as bell:
                while not holds(row := await self.get(job_id)):
                    await bell.wait(0.2)
                return row

    async def ended(self, job_id: str) -> JobRow:
        return await self.until(job_id, lambda row: row.state.is_terminal)

    async def pids(self, job_id: str, attempt: int = 1) -> list[int]:
        """The processes that an attempt has told of in its log."""
        log = self.state_dir.attempt_log(job_id, attempt)
        await eventually(lambda: log.exists() and log.read_text().endswith("\n"))
        return [int(word) for word in log.read_text().split()]


async def eventually(holds: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    async with asyncio.timeout(limit_s):
        while not holds():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


async def all_dead(pids: Iterable[int]) -> None:
    await eventually(lambda: not any(alive(pid) for pid in pids))


@asynccontextmanager
async def stopped(pid: int) -> AsyncIterator[Callable[[], set[int]]]:
    """A process that takes no signals within the block; gives those that wait for it."""

    def status(field: str) -> str:
        text = Path(f"/proc/{pid}/status").read_text()
        return text.partition(f"{field}:")[2].split()[0]

    def pending() -> set[int]:
        mask = int(status("ShdPnd"), 16)
        return {number for number in range(1, 65) if mask >> (number - 1) & 1}

    os.kill(pid, signal.SIGSTOP)
    await eventually(lambda: status("State") == "T")
    yield pending
    os.kill(pid, signal.SIGCONT)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path)
    await house.store.open()
    await house.doorbell.open()
    yield house
    for worker in house.workers:
        if worker.pid is not None:
            os.kill(worker.pid, signal.SIGCONT)
        await worker.stop()
    await house.doorbell.close()
    await house.store.close()


async def test_a_killed_worker_is_started_again_and_its_jobs_run_again(house: House) -> None:
    """Traps 3, 10, 19: nothing stuck in RUNNING, nothing lost, no orphan."""
    worker = await house.worker()
    (job_id,) = await house.submit("hold", retry=RETRYABLE)
    (once,) = await house.submit("brood")
    pids = await house.pids(job_id) + await house.pids(once)
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    await all_dead(pids)
    ended = await house.ended(job_id)
    assert (ended.state, ended.attempt, ended.crashes) == (JobState.SUCCEEDED, 2, 1)
    lost = await house.ended(once)
    assert (lost.outcome, lost.attempt) == (Outcome.WORKER_LOST, 1)
    assert worker.restarts == 1


async def test_a_dead_parent_ends_the_worker_and_its_trees(house: House, tmp_path: Path) -> None:
    """Trap 25b: after SIGKILL of the server alone its children lived on."""
    code = (
        "import asyncio, sys\n"
        "from headway.core.clock import SystemClock\n"
        "from headway.dispatch.worker_process import WorkerProcess\n"
        "from headway.dispatch.worker_settings import WorkerSettings\n"
        "async def main():\n"
        "    settings = WorkerSettings.model_validate_json(sys.argv[1])\n"
        "    worker = WorkerProcess(settings, SystemClock())\n"
        "    await worker.start()\n"
        "    print(worker.pid, flush=True)\n"
        "    await asyncio.sleep(120)\n"
        "asyncio.run(main())\n"
    )
    import sys

    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, house.settings().model_dump_json(),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert parent.stdout is not None
    worker_pid = int(await parent.stdout.readline())
    (job_id,) = await house.submit("brood")
    pids = await house.pids(job_id)
    parent.kill()
    await parent.wait()
    await all_dead([worker_pid, *pids])
    row = await house.get(job_id)
    assert (row.state, row.released, row.crashes) == (JobState.PENDING, 1, 0)


async def test_a_stopped_worker_loses_its_job_and_writes_nothing_more(house: House) -> None:
    """J5, trap 6: paused past its lease, another finishes, then it goes on."""
    paused = await house.worker(lease_s=2.0)
    (job_id,) = await house.submit("hold", retry=RETRYABLE, input_json='{"seconds": 4}')
    pids = await house.pids(job_id)
    assert paused.pid is not None
    os.kill(paused.pid, signal.SIGSTOP)
    await house.worker()
    ended = await house.ended(job_id)
    assert (ended.state, ended.attempt) == (JobState.SUCCEEDED, 2)
    log = house.state_dir.attempt_log(job_id, 1).read_bytes()
    os.kill(paused.pid, signal.SIGCONT)
    await all_dead(pids)
    assert await house.get(job_id) == ended
    assert (await house.store.result(job_id)).json == "2"  # type: ignore[union-attr]
    assert house.state_dir.attempt_log(job_id, 1).read_bytes() == log
    assert len([e for e in await house.store.events(job_id) if e.kind == "ended"]) == 1


async def test_a_drain_finishes_what_it_can_and_gives_back_the_rest(
    house: House, tmp_path: Path
) -> None:
    """J18: a drained attempt does not count; nothing is claimed meanwhile."""
    worker = await house.worker(drain_s=6.0)
    (quick,) = await house.submit("until_file", input_json=f'{{"path": "{tmp_path}/go"}}')
    (slow,) = await house.submit("brood")
    pids = await house.pids(slow)
    await house.until(quick, lambda row: row.state is JobState.RUNNING)
    assert worker.pid is not None
    async with stopped(worker.pid) as pending:
        stopping = asyncio.create_task(worker.stop())
        await eventually(lambda: signal.SIGTERM in pending())
    await eventually(lambda: signal.SIGTERM not in pending())
    await asyncio.sleep(0.2)  # it has taken the signal, and needs a turn of its loop for it
    (late,) = await house.submit("mark", lane="short", input_json='{"directory": "."}')
    (tmp_path / "go").touch()
    await stopping
    assert worker.pid is None
    await all_dead(pids)
    assert (await house.get(quick)).state is JobState.SUCCEEDED
    back = await house.get(slow)
    assert (back.state, back.released, back.attempt) == (JobState.PENDING, 1, 1)
    assert (await house.get(late)).state is JobState.PENDING


async def test_a_second_sigterm_does_not_wait(house: House) -> None:
    worker = await house.worker(drain_s=60.0)
    (job_id,) = await house.submit("hold")
    pids = await house.pids(job_id)
    assert worker.pid is not None
    # So busy that it takes no signal before the next one is sent.
    async with stopped(worker.pid) as pending:
        stopping = asyncio.create_task(worker.stop())
        await eventually(lambda: signal.SIGTERM in pending())
        worker.hurry()
    async with asyncio.timeout(40):
        await stopping
    await all_dead(pids)
    row = await house.get(job_id)
    assert (row.state, row.released) == (JobState.PENDING, 1)


async def test_cancel_kills_the_whole_tree_and_says_how(house: House) -> None:
    """J6, N10, trap 21."""
    await house.worker()
    (job_id,) = await house.submit("brood", grace_s=0.2)
    pids = await house.pids(job_id)
    assert await house.store.request_cancel(job_id, "ann") is CancelResult.REQUESTED
    house.doorbell.ring(CANCEL)
    assert (await house.ended(job_id)).outcome is Outcome.CANCELLED
    assert not any(alive(pid) for pid in pids)
    kinds = [event.kind for event in await house.store.events(job_id)]
    assert kinds == ["submitted", "claimed", "cancel_requested", "killed", "ended"]


async def test_a_cancel_survives_the_death_of_the_worker(house: House) -> None:
    """J6: durable when the server dies between intent and signal."""
    worker = await house.worker()
    (job_id,) = await house.submit("hold", retry=RETRYABLE)
    await house.pids(job_id)
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGSTOP)
    await house.store.request_cancel(job_id, "ann")
    os.kill(worker.pid, signal.SIGKILL)
    ended = await house.ended(job_id)
    assert (ended.outcome, ended.attempt) == (Outcome.CANCELLED, 1)


@pytest.mark.parametrize("how", ["exit", "kill"])
async def test_a_job_that_kills_its_process_is_quarantined_and_neighbours_live(
    house: House, how: str
) -> None:
    """Traps 2 and 25a, J8."""
    await house.worker()
    policy = RetryPolicy(max_attempts=9, retryable=True, quarantine_after=3, backoff_s=0.05)
    (neighbour,) = await house.submit("hold", input_json='{"seconds": 1.0}')
    (job_id,) = await house.submit("die", retry=policy, input_json=f'{{"how": "{how}"}}')
    ended = await house.ended(job_id)
    assert (ended.outcome, ended.attempt, ended.crashes) == (Outcome.QUARANTINED, 3, 3)
    assert ended.error is not None
    assert ("exit code 3" if how == "exit" else "SIGKILL") in ended.error.message
    done = await house.ended(neighbour)
    assert (done.state, done.attempt) == (JobState.SUCCEEDED, 1)


async def test_everything_killed_with_many_queued(house: House, tmp_path: Path) -> None:
    """J2, P16, trap 10: kill -9 of the worker with hundreds queued, then start."""
    marks = tmp_path / "marks"
    marks.mkdir()
    worker = await house.worker()
    retrying = await house.submit("again", 2, retry=RETRYABLE)
    queued = await house.submit(
        "mark", 150, lane="short", retry=RETRYABLE, input_json=f'{{"directory": "{marks}"}}'
    )
    for kill in range(2):
        await eventually(lambda n=kill: len(list(marks.iterdir())) > 30 * (n + 1))  # type: ignore[misc]
        restarts = worker.restarts
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        await eventually(lambda r=restarts: worker.restarts > r and worker.ready)  # type: ignore[misc]
    for job_id in [*queued, *retrying]:
        ended = await house.ended(job_id)
        assert ended.state is JobState.SUCCEEDED
        events = [event.kind for event in await house.store.events(job_id)]
        assert events.count("ended") == 1
    assert {path.name for path in marks.iterdir()} == set(queued)


async def test_a_locked_database_is_waited_for(house: House) -> None:
    """Fault suite: SQLite locked by another process, for longer than SQLite itself waits."""
    await house.worker(lease_s=30.0)
    (job_id,) = await house.submit("hold", input_json='{"seconds": 0.2}')
    await house.pids(job_id)
    with closing(sqlite3.connect(house.state_dir.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        await asyncio.sleep(6)
        other.execute("ROLLBACK")
    ended = await house.ended(job_id)
    assert (ended.state, ended.attempt) == (JobState.SUCCEEDED, 1)


async def test_workers_that_start_at_once_share_the_work(house: House, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    ids = await house.submit("mark", 100, lane="short", input_json=f'{{"directory": "{marks}"}}')
    await asyncio.gather(house.worker(), house.worker())
    for job_id in ids:
        assert (await house.ended(job_id)).state is JobState.SUCCEEDED
        assert (marks / job_id).read_text() == "x"


async def test_a_worker_that_cannot_work_says_why(house: House) -> None:
    house.operations.write_text("import nothing_of_this_name\n")
    with pytest.raises(ConfigError, match="nothing_of_this_name"):
        await house.worker()


async def test_metrics_of_the_worker_can_be_read(house: House) -> None:
    """J15: one scrape tells all."""
    assert await read_worker_metrics(house.state_dir) == {}
    await house.worker()
    (job_id,) = await house.submit("again", retry=RETRYABLE)
    await house.ended(job_id)
    text = (await read_worker_metrics(house.state_dir))["worker"]
    assert 'headway_attempts_started_total{lane="long",operation="again"} 3.0' in text
    assert 'disposition="retried"' in text
    assert 'headway_lane_slots{kind="guaranteed",lane="long"}' in text
    assert 'headway_store_seconds_count{kind="write",process="worker"}' in text


async def test_nothing_is_listed_as_live_after_all_of_it(house: House) -> None:
    await house.worker()
    ids = await house.submit("again", 5, retry=RETRYABLE)
    for job_id in ids:
        await house.ended(job_id)
    live = JobQuery(states=(JobState.PENDING, JobState.RUNNING))
    assert (await house.store.list_jobs(live)).jobs == ()
