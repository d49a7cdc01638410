"""The forkserver: preloads, is replaced when it dies, and takes nothing with it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time

import psutil
import pytest

from headway.core.clock import SystemClock
from headway.core.errors import ConfigError
from headway.core.states import Outcome
from headway.execution import process as process_module
from headway.execution.attempt import Cancelled, Died, KillMeans, NotStarted
from headway.execution.forkserver import Forkserver, ForkserverLost, ForkserverSetup
from headway.execution.process_factory import ProcessFactory
from headway.execution.running import HANG_UP_LIMIT_S
from headway.execution.settings import SupervisorSettings


@pytest.mark.parametrize("means", [None, KillMeans.SUBREAPER])
async def test_running_jobs_survive_the_death_of_the_forkserver(make_bench, tools, means) -> None:
    async with make_bench(kill_means=means) as bench:
        running = [await bench.start("sleep", {"seconds": 1.0}) for _ in range(3)]
        for _, recorder in running:
            await recorder.started.wait()
        os.kill(bench.supervisor.forkserver_pid, signal.SIGKILL)
        for one, _ in running:
            assert (await one.wait()).outcome is Outcome.SUCCEEDED
        assert await bench.value("echo", {"value": 5}) == 5
        await tools.eventually(lambda: bench.supervisor.statistics()["forkserver_restarts"] == 1)


async def test_deaths_without_a_forkserver_are_told_exactly(make_bench) -> None:
    async with make_bench() as bench:
        killed, killed_recorder = await bench.start("sleep")
        await killed_recorder.started.wait()
        exits, exits_recorder = await bench.start("cleans_up", {"note": "/dev/null"})
        await exits_recorder.started.wait()
        os.kill(bench.supervisor.forkserver_pid, signal.SIGKILL)
        os.kill(killed.pid, signal.SIGKILL)
        ending = (await killed.wait()).ending
        assert isinstance(ending, Died)
        assert ending.signal == signal.SIGKILL
        report = await exits.cancel()
        assert report.obeyed
        assert (await exits.wait()).ending == Cancelled()


async def test_a_tree_dies_also_while_there_is_no_forkserver(make_bench, tmp_path, tools) -> None:
    async with make_bench(kill_means=KillMeans.SUBREAPER) as bench:
        running, recorder = await bench.start("ignores", {"pids": str(tmp_path / "pids")})
        await recorder.printed.wait()
        os.kill(bench.supervisor.forkserver_pid, signal.SIGKILL)
        report = await running.cancel(grace_s=0.1)
        pids = tools.read_pids(tmp_path / "pids")
        assert not any(tools.alive(pid) for pid in (*pids, running.pid))
        assert set(report.killed) >= {*pids, running.pid}


async def test_a_death_that_the_forkserver_is_slow_to_tell_of_is_told_exactly(
    make_bench, monkeypatch: pytest.MonkeyPatch, tools
) -> None:
    """On a busy machine it was reported as a kill by Headway, or as a death that nobody saw."""
    monkeypatch.setattr(process_module, "STATUS_LIMIT_S", 60.0)
    async with make_bench(spare_processes=0) as bench:
        running, recorder = await bench.start("sleep")
        await recorder.started.wait()
        process = running._process
        os.kill(bench.supervisor.forkserver_pid, signal.SIGSTOP)
        os.kill(running.pid, signal.SIGKILL)
        await tools.eventually(lambda: process.is_dead() and process.ended.cancelled())
        await asyncio.sleep(HANG_UP_LIMIT_S + 0.2)  # the attempt has had its turn behind it
        os.kill(bench.supervisor.forkserver_pid, signal.SIGCONT)
        result = await running.wait()
        assert isinstance(result.ending, Died)
        assert result.ending.signal == signal.SIGKILL
        assert result.kill is None


LATE_CHILD = """
import os, selectors, socket, sys
from headway.execution.forkserver_main import Forkserver, ForkserverConfig
from headway.execution.messages import Fork
from headway.jobs.registry import Registry

fork, own_pid = os.fork, os.getpid()

def late_fork():
    pid = fork()
    while pid == 0 and os.getppid() == own_pid:
        pass
    return pid

os.fork = late_fork
link, supervisor = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
config = ForkserverConfig(link.fileno(), 0, (), (), None)
forkserver = Forkserver(link, Registry(), config)
forkserver._fork(Fork(1, (), False), [int(sys.argv[1])], selectors.DefaultSelector())
os._exit(0)
"""


async def test_a_child_whose_first_turn_comes_after_its_forkserver_s_death_ends() -> None:
    """Trap 25b: it took whoever was its parent by then for the forkserver, and would have run."""
    ours, theirs = socket.socketpair()
    with ours:
        ours.setblocking(False)
        with theirs:
            command = [sys.executable, "-c", LATE_CHILD, str(theirs.fileno())]
            forkserver = await asyncio.create_subprocess_exec(*command, pass_fds=[theirs.fileno()])
        assert await forkserver.wait() == 0
        async with asyncio.timeout(60):
            assert await asyncio.get_running_loop().sock_recv(ours, 1) == b"", "it has ended"


async def test_a_start_during_the_restart_waits_for_it(make_bench) -> None:
    async with make_bench(spare_processes=0) as bench:
        os.kill(bench.supervisor.forkserver_pid, signal.SIGKILL)
        assert await bench.value("echo", {"value": 1}) == 1


async def test_a_stopped_forkserver_is_replaced(make_bench, monkeypatch) -> None:
    monkeypatch.setattr("headway.execution.forkserver.ANSWER_LIMIT_S", 0.5)
    async with make_bench(spare_processes=0) as bench:
        os.kill(bench.supervisor.forkserver_pid, signal.SIGSTOP)
        assert await bench.value("echo", {"value": 1}) == 1


async def test_a_module_that_cannot_be_imported_is_an_error_with_its_traceback(
    make_bench, tmp_path
) -> None:
    broken = tmp_path / "broken_operations.py"
    broken.write_text("import headway.jobs\nraise RuntimeError('no licence file')\n")
    with pytest.raises(ConfigError, match="no licence file"):
        async with make_bench(modules=(str(broken),)):
            pass


async def test_a_module_that_ends_the_process_is_an_error(make_bench, tmp_path) -> None:
    broken = tmp_path / "exiting_operations.py"
    broken.write_text("import os\nos._exit(9)\n")
    with pytest.raises(ConfigError, match="exit code 9"):
        async with make_bench(modules=(str(broken),)):
            pass


async def test_a_module_that_takes_too_long_is_an_error(make_bench, tmp_path) -> None:
    slow = tmp_path / "slow_operations.py"
    slow.write_text("import time\ntime.sleep(600)\n")
    with pytest.raises(ConfigError, match=r"0\.5 s"):
        async with make_bench(modules=(str(slow),), start_timeout_s=0.5):
            pass


async def test_nothing_starts_once_the_supervisor_is_closed(make_bench) -> None:
    async with make_bench(spare_processes=0) as bench:
        await bench.supervisor.close()
        result = await bench.run("echo")
        assert isinstance(result.ending, NotStarted)


async def test_the_forkserver_ignores_the_signals_of_a_terminal(make_bench) -> None:
    async with make_bench(spare_processes=0) as bench:
        pid = bench.supervisor.forkserver_pid
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(pid, number)
        await asyncio.sleep(0)
        assert await bench.value("echo", {"value": 1}) == 1
        assert bench.supervisor.forkserver_pid == pid


async def test_a_process_that_comes_as_its_asker_is_cancelled_is_let_go() -> None:
    """Its descriptors were left open, and itself waiting, until they were collected."""
    setup = ForkserverSetup((), {"PATH": os.environ["PATH"]}, None, start_timeout_s=60)
    exited = asyncio.Event()
    forkserver = Forkserver(setup, lambda _: exited.set(), lambda: None)
    await forkserver.open()
    try:
        before = len(os.listdir("/proc/self/fd"))
        asking = asyncio.create_task(forkserver.fork((), adopt=False))
        async with asyncio.timeout(60):
            # One step of the loop at a time: the answer is seen just before the asker wakes.
            while not any(answer.done() for answer in forkserver._forks.values()):  # noqa: ASYNC110
                await asyncio.sleep(0)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert len(os.listdir("/proc/self/fd")) == before
            await exited.wait()
    finally:
        await forkserver.close()


async def test_the_death_of_a_process_that_nobody_knows_yet_is_told_exactly() -> None:
    """Told in one breath with its fork, it was dropped, and the process had died unseen."""
    factory = ProcessFactory(SupervisorSettings(modules=()), SystemClock())
    await factory.open()
    try:
        forkserver = psutil.Process(factory.forkserver_pid)
        asking = asyncio.create_task(factory.new())
        while not factory.current()._forks:  # noqa: ASYNC110 - one step of the loop at a time
            await asyncio.sleep(0)
        # Blocking, so that the supervisor sees the fork and the death together.
        while not (children := forkserver.children()):
            time.sleep(0.01)  # noqa: ASYNC251
        children[0].kill()
        while forkserver.children():
            time.sleep(0.01)  # noqa: ASYNC251
        process = await asking
        async with asyncio.timeout(60):
            assert (await process.exit).signal == signal.SIGKILL
    finally:
        await factory.close()


async def test_who_finds_the_link_broken_does_not_find_the_same_dead_forkserver_again() -> None:
    """Three quick tries once met the same dead one, and the attempt was given up."""
    setup = ForkserverSetup((), {"PATH": os.environ["PATH"]}, None, start_timeout_s=60)
    lost: list[bool] = []
    forkserver = Forkserver(setup, lambda _: None, lambda: lost.append(True))
    await forkserver.open()
    try:
        assert forkserver.pid is not None
        os.kill(forkserver.pid, signal.SIGKILL)
        # Blocking, so that no step of the loop lies between the death and the request.
        os.waitid(os.P_PID, forkserver.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222
        with pytest.raises(ForkserverLost):
            await forkserver.fork((), adopt=False)
        assert not forkserver.alive
        assert lost
    finally:
        await forkserver.close()
