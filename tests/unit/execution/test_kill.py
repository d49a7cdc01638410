"""Whole trees die, by each means; the report tells which pids and how long (J6, N10, trap 21)."""

# ruff: noqa: ASYNC220, ASYNC240 - short waits and file reads of a test harm nobody
from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
from pathlib import Path

import psutil
import pytest

from headway.core.clock import SystemClock, monotonic_ns, s_from_ns
from headway.core.errors import ConfigError
from headway.core.states import Outcome
from headway.execution.attempt import (
    Cancelled,
    Died,
    KillMeans,
    Limits,
    OutOfMemory,
    Succeeded,
    TimedOut,
)
from headway.execution.cgroup import Cgroup, CgroupBase, find_parent
from headway.execution.forkserver import NewProcess
from headway.execution.kill import CgroupKiller, ProcessGroupKiller
from headway.execution.process import JobProcessHandle


def cgroups_work() -> bool:
    parent = find_parent()
    base = CgroupBase(parent, f"{os.getpid()}.0.probe") if parent else None
    if base is None or not base.create():
        return False
    base.remove()
    return True


needs_cgroups = pytest.mark.skipif(not cgroups_work(), reason="no cgroups can be made here")
COMPLETE = [
    pytest.param(KillMeans.CGROUP, marks=needs_cgroups),
    KillMeans.SUBREAPER,
]


async def start_tree(bench, operation, path, tools, **fields):
    """A running job with a child and a setsid double-forked grandchild that ignore SIGTERM."""
    running, recorder = await bench.start(operation, {"pids": str(path)}, **fields)
    await recorder.printed.wait()
    pids = tools.read_pids(path)
    assert len(pids) == 2
    assert all(tools.alive(pid) for pid in pids)
    return running, pids


@pytest.mark.parametrize("means", COMPLETE)
async def test_a_tree_that_ignores_sigterm_dies_after_the_grace(
    make_bench, tmp_path, tools, means
) -> None:
    """Trap 21: killpg left a setsid double-forked grandchild alive."""
    async with make_bench(kill_means=means) as bench:
        running, pids = await start_tree(bench, "ignores", tmp_path / "pids", tools)
        began_ns = monotonic_ns()
        report = await running.cancel(grace_s=0.3)
        took_s = s_from_ns(monotonic_ns() - began_ns)
        assert not any(tools.alive(pid) for pid in (*pids, running.pid))
        assert report.means is means
        assert not report.obeyed
        assert set(report.killed) >= {running.pid, *pids}
        assert report.survivors == ()
        assert 0.3 <= report.duration_s <= took_s
        assert report.as_event()["means"] == means.value
        assert (await running.wait()).ending == Cancelled()


@pytest.mark.parametrize("means", COMPLETE)
async def test_a_job_that_obeys_still_takes_its_stubborn_tree_along(
    make_bench, tmp_path, tools, means
) -> None:
    async with make_bench(kill_means=means) as bench:
        running, pids = await start_tree(bench, "obeys_with_tree", tmp_path / "pids", tools)
        report = await running.cancel(grace_s=30)
        assert report.obeyed
        assert set(report.killed) >= set(pids)
        assert not any(tools.alive(pid) for pid in pids)
        assert report.duration_s < 30, "nobody waits for the grace when the job has ended"


@pytest.mark.parametrize("means", COMPLETE)
@pytest.mark.parametrize("operation", ["leaves_daemons", "short_leaves_daemons"])
async def test_descendants_that_outlive_a_good_job_are_swept(
    make_bench, tmp_path, tools, means, operation
) -> None:
    async with make_bench(kill_means=means) as bench:
        running, _ = await bench.start(operation, {"pids": str(tmp_path / "pids")})
        result = await running.wait()
        assert isinstance(result.ending, Succeeded)
        assert result.kill is not None
        assert result.kill.reason == "left_over"
        pids = tools.read_pids(tmp_path / "pids")
        assert set(result.kill.killed) >= set(pids)
        assert not any(tools.alive(pid) for pid in pids)
        assert result.log.complete


@pytest.mark.parametrize("means", COMPLETE)
async def test_descendants_of_a_crashed_job_are_swept(make_bench, tmp_path, tools, means) -> None:
    """Its orphans are no longer below it, and are found all the same; a neighbour's are not hit."""
    async with make_bench(kill_means=means) as bench:
        neighbour, others = await start_tree(bench, "ignores", tmp_path / "others", tools)
        running, _ = await bench.start("crash_with_daemons", {"pids": str(tmp_path / "pids")})
        result = await running.wait()
        assert isinstance(result.ending, Died)
        pids = tools.read_pids(tmp_path / "pids")
        assert not any(tools.alive(pid) for pid in pids)
        assert result.kill is not None
        assert set(result.kill.killed) >= set(pids)
        assert all(tools.alive(pid) for pid in (*others, neighbour.pid))
        await neighbour.cancel(grace_s=0)
        assert not any(tools.alive(pid) for pid in (*others, neighbour.pid))


@pytest.mark.parametrize("means", COMPLETE)
async def test_a_tree_that_forks_while_it_is_killed_dies_whole(make_bench, tools, means) -> None:
    async with make_bench(kill_means=means) as bench:
        running, recorder = await bench.start("fork_storm")
        await recorder.printed.wait()
        await asyncio.sleep(0.1)
        report = await running.cancel(grace_s=0)
        assert report.survivors == ()
        await asyncio.sleep(0.1)
        left = [pid for pid in report.killed if tools.alive(pid)]
        assert left == []
        children = f"/proc/{bench.supervisor.forkserver_pid}/stat"
        assert os.path.exists(children)
        await tools.eventually(
            lambda: (
                tree_of(bench.supervisor.forkserver_pid, tools)
                <= {process.pid for process in bench.supervisor._factory.processes}
            )
        )


def tree_of(pid, tools) -> set[int]:
    from headway.execution.linux import descendants, read_processes

    return {facts.pid for facts in descendants(pid, read_processes())}


async def test_the_process_group_is_killed_as_the_last_resort(make_bench, tmp_path, tools) -> None:
    """N10: this means does not claim what it cannot do; a setsid descendant is not found by it."""
    async with make_bench(kill_means=KillMeans.PROCESS_GROUP) as bench:
        running, (child, escaped) = await start_tree(bench, "ignores", tmp_path / "pids", tools)
        report = await running.cancel(grace_s=0.1)
        assert report.means is KillMeans.PROCESS_GROUP
        assert {running.pid, child} <= set(report.killed)
        assert escaped not in report.killed
        assert not tools.alive(child)
        assert (await running.wait()).log.complete is False, "the escaped one holds the pipe"
    await tools.eventually(lambda: not tools.alive(escaped))


@pytest.mark.parametrize("killer", [CgroupKiller, ProcessGroupKiller])
async def test_a_process_that_is_not_in_its_group_yet_is_killed_too(tmp_path, killer) -> None:
    """Cancelled right after its fork it once ran on, and left its children in a dead job's group.

    This one is in the test's own process group, and its control group is empty.
    """
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with theirs, subprocess.Popen(["sleep", "60"]) as sleeper:
        new = NewProcess(sleeper.pid, os.pidfd_open(sleeper.pid), ours)
        process = JobProcessHandle(new, Cgroup(tmp_path / "group"))
        process.adopt()
        assert await killer(SystemClock()).kill(process) == ((sleeper.pid,), ())
        assert process.exit.result().signal == signal.SIGKILL


async def test_the_log_of_a_survivor_does_not_hang_the_attempt(make_bench, tmp_path, tools) -> None:
    async with make_bench(kill_means=KillMeans.PROCESS_GROUP) as bench:
        async with asyncio.timeout(20):
            result = await bench.run("leaves_daemons", {"pids": str(tmp_path / "pids")})
        assert result.outcome is Outcome.SUCCEEDED
        assert not result.log.complete


@needs_cgroups
async def test_a_forced_means_that_works_is_the_one_in_use(make_bench) -> None:
    async with make_bench(kill_means=KillMeans.CGROUP) as bench:
        assert bench.supervisor.kill_means is KillMeans.CGROUP


async def test_a_forced_means_that_is_not_to_be_had_is_an_error(make_bench, monkeypatch) -> None:
    monkeypatch.setattr("headway.execution.process_factory.find_parent", lambda: None)
    with pytest.raises(ConfigError, match="cgroup"):
        async with make_bench(kill_means=KillMeans.CGROUP):
            pass
    async with make_bench() as bench:
        assert bench.supervisor.kill_means is KillMeans.SUBREAPER


async def test_a_timeout_kills_a_job_that_ignores_it(make_bench, tmp_path, tools) -> None:
    async with make_bench() as bench:
        pids = tmp_path / "pids"
        for timeout_s in (1.0, 5.0, 25.0):
            limits = Limits(timeout_s=timeout_s, grace_s=0.2)
            result = await bench.run("ignores", {"pids": str(pids)}, limits=limits)
            assert result.ending == TimedOut(timeout_s)
            if pids.exists() and len(tools.read_pids(pids)) == 2:
                break  # else it was ended before it had begun to ignore anything
            pids.unlink(missing_ok=True)
        assert not result.kill.obeyed
        assert not any(tools.alive(pid) for pid in tools.read_pids(pids))


async def test_cgroups_do_not_pile_up(make_bench) -> None:
    """Trap 20: something per job that is never removed."""
    async with make_bench(spare_processes=0, warm_processes=0) as bench:
        groups = bench.supervisor._factory._groups
        if groups is None:
            pytest.skip("no cgroups can be made here")
        for _ in range(5):
            await bench.run("sys_exit", {"code": 1})
        names = {path.name for path in groups.path.iterdir() if path.is_dir()}
        assert names == {"forkserver"}
    assert not groups.path.exists()


async def test_close_stops_what_runs_and_leaves_no_process(make_bench, tmp_path, tools) -> None:
    """J18."""
    async with make_bench() as bench:
        running, pids = await start_tree(bench, "ignores", tmp_path / "pids", tools)
        forkserver = bench.supervisor.forkserver_pid
        await bench.supervisor.close(grace_s=0.1)
        result = await running.wait()
        assert result.ending == Cancelled()
        assert result.kill.reason == "closing"
        assert not any(tools.alive(pid) for pid in (*pids, running.pid, forkserver))
        assert not list(bench.state_dir.tmp.iterdir())


async def test_supervisors_start_and_stop_repeatedly_in_one_process(make_bench) -> None:
    """J18: nothing is left in the process: no descriptor, no child."""
    async with make_bench():
        pass
    before = len(os.listdir("/proc/self/fd"))
    children = set(psutil.Process().children())  # of other tests in this process
    for _ in range(3):
        async with make_bench() as bench:
            assert await bench.value("echo", {"value": 1}) == 1
    assert len(os.listdir("/proc/self/fd")) == before
    assert set(psutil.Process().children()) <= children


async def test_a_signal_cannot_be_sent_to_the_dead(make_bench) -> None:
    """Trap 5."""
    async with make_bench() as bench:
        running, recorder = await bench.start("sleep")
        await recorder.started.wait()
        process = running._process
        await running.cancel(grace_s=0)
        assert not process.send_signal(signal.SIGKILL)


@pytest.mark.serial  # for a second, whoever is killed on this host counts as out of memory
async def test_a_job_that_the_kernel_kills_for_memory_is_out_of_memory(make_bench) -> None:
    """J26: told by the kernel's own count, not guessed from SIGKILL."""
    group = Path(f"/sys/fs/cgroup/memory/headway-test-{os.getpid()}")
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(48 << 20))
    except OSError:
        pytest.skip("no memory control group of version 1 can be made here")
    try:
        async with make_bench() as bench:
            running, recorder = await bench.start("eats_memory_when_told", {"megabytes": 200})
            await recorder.printed.wait()
            (group / "cgroup.procs").write_text(str(running.pid))
            result = await running.wait()
            assert isinstance(result.ending, OutOfMemory)
            assert "out-of-memory killer" in result.ending.evidence
            assert result.outcome is Outcome.OUT_OF_MEMORY
    finally:
        group.rmdir()
