"""The barrier of a fleet of real processes, and its end."""

from __future__ import annotations

import asyncio
import signal
import socket

import msgspec
import pytest

from headway.core.clock import SystemClock, monotonic_ns, ns_from_s
from headway.core.errors import WorkerLost
from headway.load.early import EarlyWorker
from headway.load.fleet import Deadlines, Fleet, RunSetup
from headway.load.inputs import prepare
from headway.load.spec import RunSpec


class Listener:
    def __init__(self):
        self.lost = []

    def worker_said(self, worker, message):
        pass

    def worker_lost(self, worker, cause):
        self.lost.append((worker.number, cause))


@pytest.fixture
async def setup(tmp_path):
    spec = RunSpec.model_validate({"target": {"url": "http://x"}, "backend": {"kind": "null"}})
    recipe = await prepare(spec.inputs, spec.backend, 0, tmp_path)
    return RunSetup(
        spec_json=spec.model_dump_json().encode(), recipe=msgspec.msgpack.encode(recipe)
    )


@pytest.fixture
async def make_fleet(tmp_path):
    fleets = []

    def make(**deadlines):
        listener = Listener()
        log = tmp_path / "workers.log"
        fleet = Fleet(log, Deadlines(**deadlines), SystemClock(), listener)
        fleets.append(fleet)
        return fleet, listener

    yield make
    for fleet in fleets:
        await fleet.kill()


async def test_the_barrier_has_a_deadline_and_leaves_no_process(make_fleet, setup):
    """Trap 34: a barrier and several waits had no timeout."""
    fleet, _ = make_fleet(start_s=0.001)
    fleet.spawn(2)
    processes = [worker.process for worker in fleet.workers]
    with pytest.raises(WorkerLost, match="not ready within"):
        await fleet.start(2, setup)
    assert all(process.poll() is not None for process in processes)
    assert fleet.workers == []


async def test_a_worker_that_dies_before_it_is_ready_is_named_with_what_it_wrote(
    make_fleet, setup, tmp_path, monkeypatch
):
    (tmp_path / "httptools.py").write_text("raise ImportError('libfoo is missing')")
    (tmp_path / "msgspec.py").write_text("raise ImportError('libfoo is missing')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    fleet, _ = make_fleet(start_s=20)
    with pytest.raises(WorkerLost, match="libfoo is missing"):
        await fleet.start(1, setup)


async def test_dead_workers_are_replaced_at_the_next_barrier_and_reported_once(make_fleet, setup):
    fleet, listener = make_fleet()
    await fleet.start(2, setup)
    first, second = fleet.workers
    first.process.kill()
    async with asyncio.timeout(20):
        while not listener.lost:  # noqa: ASYNC110  the listener is the event
            await asyncio.sleep(0.01)
    assert [worker.number for worker in fleet.workers] == [1]
    await fleet.start(2, setup)
    assert [worker.number for worker in fleet.workers] == [0, 1]
    assert fleet.workers[1] is second
    assert listener.lost == [(0, "signal 9 (SIGKILL)")]


async def test_a_fleet_closes_in_peace_twice_and_takes_its_empty_log_along(
    make_fleet, setup, tmp_path
):
    fleet, listener = make_fleet()
    await fleet.start(2, setup)
    processes = [worker.process for worker in fleet.workers]
    await fleet.close()
    await fleet.close()
    assert [process.poll() for process in processes] == [0, 0]
    assert listener.lost == []
    assert not (tmp_path / "workers.log").exists()


async def test_a_fleet_is_told_of_one_run_after_another(make_fleet, setup):
    """Calibration goes before the run on the same processes, and leaves nothing of itself."""
    fleet, listener = make_fleet()
    await fleet.start(1, setup)
    before = [worker.process.pid for worker in fleet.workers]
    other = msgspec.structs.replace(setup)
    info = await fleet.start(1, other)
    assert info.model == "null"
    assert [worker.process.pid for worker in fleet.workers] == before
    again = await fleet.start(1, other)
    assert again.model is None  # Nothing was asked a third time.
    assert listener.lost == []


def stopped(process):
    process.send_signal(signal.SIGSTOP)


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110  the fleet tells nobody
            await asyncio.sleep(0.01)


async def test_a_worker_that_does_not_end_in_peace_is_ended(make_fleet, setup):
    """L8: it is stopped, and hears nobody."""
    fleet, listener = make_fleet()
    await fleet.start(2, setup)
    processes = [worker.process for worker in fleet.workers]
    stopped(processes[1])
    await fleet.close()
    assert [process.poll() for process in processes] == [0, -signal.SIGKILL]
    assert fleet.workers == []
    assert listener.lost == []


async def test_a_worker_that_lets_go_of_its_socket_and_lives_on_is_killed(make_fleet, setup):
    """It could neither be told anything nor be heard."""
    fleet, listener = make_fleet()
    spawned = EarlyWorker()
    fleet.adopt(spawned)
    await fleet.start(1, setup)
    stopped(spawned.process)  # It must not end by itself when it sees the end of the socket.
    spawned.socket.shutdown(socket.SHUT_RD)
    await until(lambda: listener.lost)
    assert listener.lost == [(0, "closed its socket and went on")]
    assert spawned.process.poll() == -signal.SIGKILL
    assert fleet.workers == []


class Jumping(SystemClock):
    """Moved on by a test; counts how often it was read."""

    ahead_ns = 0
    readings = 0

    def monotonic_ns(self):
        self.readings += 1
        return monotonic_ns() + self.ahead_ns


async def test_a_worker_that_takes_long_from_its_socket_s_end_to_its_own_ends_by_itself(
    tmp_path, setup
):
    """L8: on a busy machine it was killed in between, and that was said to be why it had died."""
    clock, listener = Jumping(), Listener()
    fleet = Fleet(tmp_path / "workers.log", Deadlines(), clock, listener)
    spawned = EarlyWorker()
    fleet.adopt(spawned)
    try:
        await fleet.start(1, setup)
        stopped(spawned.process)
        spawned.socket.shutdown(socket.SHUT_RD)
        await until(lambda: fleet._deaths)
        clock.ahead_ns = ns_from_s(1)
        seen = clock.readings
        await until(lambda: clock.readings > seen + 3)  # It was looked at a second later.
        spawned.process.send_signal(signal.SIGCONT)
        await until(lambda: listener.lost)
        assert listener.lost == [(0, "exit code 0")]
    finally:
        await fleet.kill()


async def test_the_cause_of_a_death_is_what_ended_it_not_a_kill_that_came_too_late(
    make_fleet, setup
):
    """The reason of a worker that was ending by itself is what has to be told."""
    fleet, _ = make_fleet()
    await fleet.start(1, setup)
    (worker,) = fleet.workers
    worker.process.send_signal(signal.SIGTERM)
    assert await worker.reap(20)
    worker.kill("closed its socket and went on")
    assert worker.cause_of_death() == "signal 15 (SIGTERM)"


async def test_after_a_pause_of_its_own_a_fleet_does_not_call_its_workers_silent(tmp_path, setup):
    """Ctrl-Z: what they sent meanwhile is unread, and the silence is ours."""
    clock, listener = Jumping(), Listener()
    fleet = Fleet(tmp_path / "workers.log", Deadlines(silence_s=60), clock, listener)
    try:
        await fleet.start(1, setup)
        (worker,) = fleet.workers
        stopped(worker.process)  # So that only the fleet itself can put its silence off.
        clock.ahead_ns = ns_from_s(3600)
        await until(lambda: worker.heard_ns > monotonic_ns() + ns_from_s(3000))
        worker.process.send_signal(signal.SIGCONT)
        assert worker.process.poll() is None
        assert listener.lost == []
    finally:
        await fleet.kill()
