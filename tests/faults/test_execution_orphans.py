"""SIGKILL of the processes above the jobs: no tree lives on (J18, traps 19, 25b)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headway.core.clock import SystemClock, monotonic_ns, ns_from_s
from headway.core.statedir import StateDir
from headway.execution.linux import read_process
from headway.execution.settings import SupervisorSettings
from headway.execution.supervisor import Supervisor

OPERATIONS = str(Path(__file__).parents[1] / "unit" / "execution" / "operations.py")

WORKER = """
import asyncio, json, sys
from pathlib import Path
from headway.core.clock import SystemClock
from headway.core.statedir import StateDir
from headway.core.states import Lane
from headway.execution.attempt import AttemptPlan, KillMeans
from headway.execution.settings import SupervisorSettings
from headway.execution.supervisor import Supervisor

async def main(operations, state, means, *files):
    settings = SupervisorSettings(modules=(operations,), kill_means=KillMeans(means))
    async with Supervisor(settings, StateDir(Path(state)), SystemClock()) as supervisor:
        for number, file in enumerate(files):
            request = json.dumps({"pids": file}).encode()
            plan = AttemptPlan(f"job{number}", 1, "ignores", Lane.LONG, request)
            running = await supervisor.start(plan)
            while not Path(file).exists() or len(Path(file).read_text().split()) < 2:
                await asyncio.sleep(0.01)
            print(running.pid, flush=True)
        print(supervisor.forkserver_pid, flush=True)
        await asyncio.sleep(600)

asyncio.run(main(*sys.argv[1:]))
"""


def alive(pid: int) -> bool:
    facts = read_process(pid)
    return facts is not None and facts.alive


def wait_until(condition: Callable[[], bool], limit_s: float = 20) -> bool:
    deadline_ns = monotonic_ns() + ns_from_s(limit_s)
    while monotonic_ns() < deadline_ns:
        if condition():
            return True
        signal.sigtimedwait([], 0.01)
    return condition()


class Worker:
    """A process with a supervisor that runs two stubborn trees."""

    def __init__(self, directory: Path, means: str) -> None:
        self.state = directory / "state"
        files = [str(directory / f"pids{number}") for number in range(2)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, OPERATIONS, str(self.state), means, *files],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        mains = [int(self.process.stdout.readline()) for _ in files]
        self.forkserver = int(self.process.stdout.readline())
        below = [int(pid) for file in files for pid in Path(file).read_text().split()]
        self.tree = [*mains, *below]
        assert len(self.tree) == 6
        assert all(alive(pid) for pid in self.tree)

    def close(self) -> None:
        for pid in (self.process.pid, self.forkserver, *self.tree):
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(params=["cgroup", "subreaper"])
def worker(request: Any, tmp_path: Path) -> Iterator[Worker]:
    try:
        worker = Worker(tmp_path, request.param)
    except ValueError:
        pytest.skip(f"{request.param} cannot be used here")
    yield worker
    worker.close()


def test_no_orphan_after_sigkill_of_the_worker(worker: Worker) -> None:
    """Trap 25b: children of a killed server lived on."""
    worker.process.kill()
    assert wait_until(lambda: not any(map(alive, (*worker.tree, worker.forkserver))))


def test_no_orphan_after_sigkill_of_worker_and_forkserver_together(worker: Worker) -> None:
    """Nobody is left to kill but the jobs themselves: the kernel wakes them."""
    os.kill(worker.process.pid, signal.SIGSTOP)
    os.kill(worker.forkserver, signal.SIGKILL)
    worker.process.kill()
    assert wait_until(lambda: not any(map(alive, worker.tree)))


@pytest.mark.serial  # any other supervisor that starts meanwhile finds them as well
async def test_the_next_start_kills_what_could_not_die_by_itself(worker: Worker) -> None:
    """A job stopped with SIGSTOP takes no signal but SIGKILL; its successor finds it."""
    mains = worker.tree[:2]
    for pid in mains:
        os.kill(pid, signal.SIGSTOP)
    os.kill(worker.process.pid, signal.SIGSTOP)
    os.kill(worker.forkserver, signal.SIGKILL)
    worker.process.kill()
    worker.process.wait()
    await asyncio.sleep(0.2)
    assert all(alive(pid) for pid in mains), "the stopped ones cannot react"
    settings = SupervisorSettings(modules=(OPERATIONS,))
    async with Supervisor(settings, StateDir(worker.state), SystemClock()):
        assert wait_until(lambda: not any(map(alive, worker.tree)))


async def test_the_next_start_removes_the_temp_directories_of_the_dead(worker: Worker) -> None:
    """J12: also after kill -9."""
    tmp = worker.state / "tmp"
    before = {path.name for path in tmp.iterdir()}
    assert before
    worker.process.kill()
    worker.process.wait()
    async with Supervisor(
        SupervisorSettings(modules=(OPERATIONS,)), StateDir(worker.state), SystemClock()
    ):
        assert not before & {path.name for path in tmp.iterdir()}


def test_jobs_of_a_stopped_worker_go_on(worker: Worker) -> None:
    """A pause is no death: nobody may kill because of it."""
    os.kill(worker.process.pid, signal.SIGSTOP)
    os.kill(worker.process.pid, signal.SIGCONT)
    assert all(alive(pid) for pid in worker.tree)
