"""Real servers that are stopped, hung up, drained and started again (J5, J18)."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from accounting import assert_everything_accounted_for, processes_of, query, wait_until
from fault_server import (
    OPERATIONS,
    Jobs,
    dead,
    second_worker,
    start,
    stop_within_a_write,
    submit,
    titled,
    until_printed,
)
from job_servers import JobServer, StartServer

from headway.core.clock import monotonic_ns, ns_from_s

pytestmark = pytest.mark.timeout(240)


def test_a_worker_that_slept_past_its_lease_can_write_nothing_more(
    start_server: StartServer, tmp_path: Path
) -> None:
    """J5, trap 6: another worker finishes the job; then the first goes on, and its attempt says,
    stores and returns what it can. None of that shows."""
    config = tmp_path / "serve.yaml"
    config.write_text("lease_s: 2\nworker_patience_s: 600\n")  # nobody but the lease ends this
    server = start(start_server, "--config", str(config))
    go = tmp_path / "go"
    with server.client() as client:
        (job,) = submit(client, "late", 1, go=str(go))
        _, pid = until_printed(client, job)
        worker = titled(server, "headway: worker")
        os.kill(worker, signal.SIGSTOP)
        with second_worker(server):
            assert client.result(job, timeout_s=60) == "attempt 2"
            before = client.get(job)
            log = client.logs(job, attempt=1)
            go.touch()
            written = go.with_suffix(".written")
            wait_until(written.exists, 20, lambda: "the stale attempt did not go on")
            os.kill(worker, signal.SIGCONT)
            wait_until(lambda: dead(pid), 20, lambda: "the stale attempt is not stopped")
            after = client.get(job)
            assert after == before
            assert after.progress is None or after.progress.message != "stale"
            assert "".join(client.logs(job, attempt=1)) == "".join(log)
            assert client.result(job) == "attempt 2"
            assert client.artifacts(job) == []
    accounts = assert_everything_accounted_for(server, [job])
    assert (accounts[job].outcome, accounts[job].attempts) == ("succeeded", 2)


def test_a_single_worker_that_was_paused_goes_on(start_server: StartServer, tmp_path: Path) -> None:
    """A suspended machine: nobody else could take the jobs over; none is lost, none runs twice
    at the same time. The worker may be stopped at any moment, within a write as well."""
    server = start(start_server, "--config", str(short_leases(tmp_path, patience_s=600)))
    with server.client() as client:
        jobs = submit(client, "work", 2, seconds=3) + submit(client, "quick", 10)
        until_printed(client, jobs[0])
        worker = titled(server, "headway: worker")
        os.kill(worker, signal.SIGSTOP)
        if not turn_taken(server):
            jobs += submit(client, "quick", 10)
        wait_until(lambda: lease_is_over(server), 20, lambda: "the lease is still held")
        os.kill(worker, signal.SIGCONT)
        jobs += submit(client, "quick", 10)
    accounts = assert_everything_accounted_for(server, jobs)
    assert {each.outcome for each in accounts.values()} == {"succeeded"}


def test_a_worker_that_is_stopped_within_a_write_is_replaced(
    start_server: StartServer, tmp_path: Path
) -> None:
    """It holds SQLite's lock and would hold it for ever: the server ends it, and every write that
    came meanwhile gets through."""
    server = start(start_server, "--config", str(short_leases(tmp_path, patience_s=3)))
    with server.client() as client:
        jobs = submit(client, "work", 1, seconds=60) + submit(client, "quick", 300)
        until_printed(client, jobs[0])
        worker = titled(server, "headway: worker")
        stop_within_a_write(server, worker)
        jobs += submit(client, "quick", 5)
        wait_until(lambda: dead(worker), 30, lambda: "the stopped worker is still there")
        wait_until(lambda: ready(server), 60, lambda: "there is no other worker")
        metrics = httpx.get(f"{server.url}/metrics", timeout=60).text
    assert sample(metrics, "headway_worker_silenced") == 1.0
    assert any("no sign of life" in entry["message"] for entry in server.log())
    accounts = assert_everything_accounted_for(server, jobs)
    assert {each.outcome for each in accounts.values()} == {"succeeded"}
    assert accounts[jobs[0]].attempts == 2


def short_leases(directory: Path, patience_s: float) -> Path:
    config = directory / "serve.yaml"
    config.write_text(f"lease_s: 1\nworker_patience_s: {patience_s:g}\n")
    return config


def turn_taken(server: JobServer) -> bool:
    """Whether a process that does not go on has its turn among the writers: from a little before
    it locks the database until a little after."""
    deadline_ns = monotonic_ns() + ns_from_s(0.5)
    with (server.state_dir / "headway.db.writer").open("rb") as file:
        while monotonic_ns() < deadline_ns:
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return False
    return True


def sample(metrics: str, name: str) -> float:
    """The value of a sample without own labels on a page of metrics."""
    line = next(line for line in metrics.splitlines() if line.startswith((f"{name} ", f"{name}{{")))
    return float(line.split()[-1])


def lease_is_over(server: JobServer) -> bool:
    leases = query(server.state_dir, "SELECT max(lease_until_ns) FROM jobs WHERE state='RUNNING'")
    return leases[0][0] is None or int(str(leases[0][0])) < monotonic_ns()


@pytest.mark.parametrize("ending", ["SIGTERM", "SIGHUP", "SIGTERM twice"])
def test_a_server_that_is_ended_in_the_middle_is_taken_up_by_the_next_on_the_same_port(
    start_server: StartServer, ending: str
) -> None:
    """J18, traps 19 and 24: restarted at once; what was given back does not count."""
    drain_s = "600" if ending == "SIGTERM twice" else "0"
    server = start(start_server, "--drain-s", drain_s)
    with server.client() as client:
        running = submit(client, "work", 2, seconds=300)
        for job in running:
            until_printed(client, job)
        jobs: Jobs = [
            *running,
            *submit(client, "work", 3, seconds=0.02),
            *submit(client, "quick", 5),
        ]
        server.signal(signal.SIGHUP if ending == "SIGHUP" else signal.SIGTERM)
        if ending == "SIGTERM twice":
            wait_until(lambda: not ready(server), 20, lambda: "it does not drain")
            server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert not processes_of(server.state_dir)
    accounts = assert_everything_accounted_for(start(start_server, port=server.port), jobs)
    assert {each.outcome for each in accounts.values()} == {"succeeded"}
    assert all(accounts[job].attempts == 2 for job in running)
    assert all(accounts[job].released == 1 for job in running)
    assert all(accounts[job].crashes == 0 for job in jobs)


def ready(server: JobServer) -> bool:
    return httpx.get(f"{server.url}/readyz", timeout=60).status_code == 200


def test_a_server_can_be_killed_while_it_starts(start_server: StartServer) -> None:
    """Killed again and again at any moment of its start: the next one always starts."""
    server = start(start_server)
    with server.client() as client:
        jobs = submit(client, "work", 2, seconds=300) + submit(client, "quick", 5)
        until_printed(client, jobs[0])
    server.signal(signal.SIGKILL)
    server.wait()
    for delay_s in (0.3, 0.9):
        command = [
            sys.executable, "-m", "headway.cli.main", "serve", "--no-bench", "--port", "0",
            "--operations", str(OPERATIONS), "--state-dir", str(server.state_dir),
        ]  # fmt: skip
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as attempt:
            with pytest.raises(subprocess.TimeoutExpired):
                attempt.wait(delay_s)
            attempt.kill()
    accounts = assert_everything_accounted_for(start(start_server, port=server.port), jobs)
    assert {each.outcome for each in accounts.values()} == {"succeeded"}
