"""What `headway chaos` has found, each bug as a test of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from accounting import assert_everything_accounted_for, query, wait_until
from fault_server import OPERATIONS, dead, second_worker, start, submit, titled, until_printed
from job_servers import StartServer

pytestmark = pytest.mark.timeout(240)


@pytest.mark.parametrize("command", ["serve", "worker"])
def test_being_told_to_stop_while_starting_is_no_error(command: str, tmp_path: Path) -> None:
    """J18: the worker that was ended over its start was reported as one that cannot work."""
    port = ("--port", "0") if command == "serve" else ()
    arguments = (command, "--no-bench", "--operations", str(OPERATIONS), *port)
    with subprocess.Popen(
        [sys.executable, "-m", "headway.cli.main", *arguments, "--state-dir", str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as starting:  # fmt: skip
        children = psutil.Process(starting.pid).children
        wait_until(lambda: bool(children()), 60, lambda: "it starts no worker")
        # The moment is made sure: the worker cannot become ready before it is told to end.
        worker = children()[0].pid
        os.kill(worker, signal.SIGSTOP)
        starting.terminate()
        os.kill(worker, signal.SIGCONT)
        _, errors = starting.communicate(timeout=60)
    assert starting.returncode == 0, errors
    assert "Error" not in errors


def test_the_next_attempt_does_not_begin_beside_what_a_dead_worker_has_left(
    start_server: StartServer,
) -> None:
    """J8, trap 25b: a worker is killed while its forkserver, which should end its jobs, is slow."""
    server = start(start_server)
    with server.client() as client:
        (job,) = submit(client, "work", 1, seconds=60)
        (first,) = until_printed(client, job)
        with second_worker(server):
            forkserver = titled(server, "headway: forkserver")
            worker = titled(server, "headway: worker")
            os.kill(forkserver, signal.SIGSTOP)
            os.kill(
                server.pid, signal.SIGSTOP
            )  # or it would start the next worker, which tidies up
            os.kill(worker, signal.SIGKILL)
            claimed = "SELECT attempt FROM jobs WHERE attempt = 2"
            wait_until(
                lambda: bool(query(server.state_dir, claimed)), 60, lambda: "it is not rescued"
            )
            assert dead(first), "two attempts at work"
            os.kill(server.pid, signal.SIGCONT)
        # By its own worker, which is back then and has tidied up behind the dead one.
        jobs = [job, *submit(client, "quick", 1)]
        client.wait(jobs[1], timeout_s=60)
    accounts = assert_everything_accounted_for(server, jobs)
    assert accounts[job].outcome == "succeeded"
