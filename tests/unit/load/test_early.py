"""Processes started early are taken over, or ended with the command that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import msgspec
import psutil

from headway.core.clock import SystemClock, monotonic_ns, ns_from_s
from headway.load.early import EarlyProcesses
from headway.load.fleet import Deadlines, Fleet, RunSetup
from headway.load.inputs import prepare
from headway.load.spec import RunSpec

SPEC = RunSpec.model_validate({"target": {"url": "http://x"}, "backend": {"kind": "null"}})


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def is_alive(pid: int) -> bool:
    """For one that is not ours to reap."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_what_nobody_took_is_ended():
    with EarlyProcesses(null_server=True) as early:
        assert early._worker is not None
        assert early._null_server is not None
        pids = [early._worker.process.pid, early._null_server.process.pid]
        assert all(is_running(pid) for pid in pids)
    assert not any(is_running(pid) for pid in pids)


def test_a_null_server_ends_with_a_command_that_was_killed_before_it_was_ready():
    """It asks for its parent when it has loaded: by then that may be another process."""
    code = (
        "import os; from headway.load.early import NullServerProcess; "
        "print(NullServerProcess().process.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    deadline_ns = monotonic_ns() + ns_from_s(60)
    while is_alive(int(killed.stdout)):
        assert monotonic_ns() < deadline_ns
        time.sleep(0.02)


def test_each_is_given_out_once():
    with EarlyProcesses(null_server=False) as early:
        worker = early.take_worker()
        assert worker is not None
        assert early.take_worker() is None
        assert early.take_null_server() is None
    assert worker.process.poll() is None  # Whoever took it ends it.
    worker.close()


async def test_a_fleet_works_with_an_adopted_worker_and_takes_its_errors(tmp_path):
    recipe = await prepare(SPEC.inputs, SPEC.backend, 0, tmp_path)
    setup = RunSetup(
        spec_json=SPEC.model_dump_json().encode(), recipe=msgspec.msgpack.encode(recipe)
    )
    with EarlyProcesses(null_server=False) as early:
        worker = early.take_worker()
        assert worker is not None
        fleet = Fleet(tmp_path / "workers.log", Deadlines(), SystemClock(), None)  # type: ignore[arg-type]
        fleet.adopt(worker)
        info = await fleet.start(2, setup)
        assert info.model == "null"
        pids = [one.process.pid for one in fleet.workers]
        assert worker.process.pid in pids
        log = os.readlink(f"/proc/{worker.process.pid}/fd/2")
        assert log == str(tmp_path / "workers.log")
        await fleet.close()
    assert not any(is_running(pid) for pid in pids)


def test_a_command_that_refuses_its_arguments_leaves_nothing_behind(tmp_path):
    """Its early worker and null server end with it, and it does not wait for them."""
    command = "from headway.cli.main import main; raise SystemExit(main())"
    refused = subprocess.run(
        [sys.executable, "-c", command, "bench", "http://127.0.0.1:9", "--streams", "0"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        check=False,
        start_new_session=True,
    )
    # The pipes are at their end: no child that inherited standard error is alive.
    assert refused.returncode == 2, refused.stderr
    assert list(tmp_path.iterdir()) == []
