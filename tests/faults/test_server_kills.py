"""SIGKILL of each process of a real server, and of all at once (J2, J8, J18, P16)."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable

import pytest
from accounting import assert_everything_accounted_for, processes_of, query, wait_until
from fault_server import dead, start, submit, titled, until_printed
from job_servers import JobServer, StartServer

pytestmark = pytest.mark.timeout(240)


KILLS: dict[str, Callable[[JobServer, int], int]] = {
    "the job's process": lambda server, job: job,
    "the forkserver": lambda server, job: titled(server, "headway: forkserver"),
    "the worker": lambda server, job: titled(server, "headway: worker"),
    "the API": lambda server, job: server.pid,
}


@pytest.mark.parametrize("victim", KILLS)
def test_sigkill_of_one_process_costs_an_attempt_and_nothing_else(
    start_server: StartServer, victim: str
) -> None:
    """Traps 2, 3, 19, 25b: the fault suite's kills, with work running and queued in both lanes."""
    server = start(start_server)
    with server.client() as client:
        # It is in its first attempt when it is killed, and ends by itself when it is not.
        (tree,) = submit(client, "brood", 1, seconds=10 if victim == "the forkserver" else 300)
        (neighbour,) = submit(client, "work", 1, seconds=2)
        pids = until_printed(client, tree)
        until_printed(client, neighbour)
        jobs = [tree, neighbour, *submit(client, "work", 3, seconds=0.05),
                *submit(client, "quick", 20), *submit(client, "twice", 3)]  # fmt: skip
    os.kill(KILLS[victim](server, pids[0]), signal.SIGKILL)
    if victim != "the forkserver":
        wait_until(lambda: all(map(dead, pids)), 30, lambda: f"the tree of the dead lives: {pids}")
    if victim == "the API":
        server.wait()
        server = start(start_server, port=server.port)
    accounts = assert_everything_accounted_for(server, jobs)
    assert {each.outcome for each in accounts.values()} == {"succeeded"}
    assert accounts[tree].attempts == (1 if victim == "the forkserver" else 2)
    if victim in ("the job's process", "the forkserver"):
        assert accounts[neighbour].attempts == 1, "one death, one job"


def test_a_job_that_may_not_run_twice_is_lost_with_its_worker_and_says_so(
    start_server: StartServer,
) -> None:
    """Trap 3: the row must not say RUNNING for ever, and waiting clients must not hang."""
    server = start(start_server)
    with server.client() as client:
        (job,) = submit(client, "once", 1, seconds=60)
        until_printed(client, job)
        os.kill(titled(server, "headway: worker"), signal.SIGKILL)
        ended = client.wait(job, timeout_s=60)
    assert ended.error is not None
    assert "died" in ended.error.message
    accounts = assert_everything_accounted_for(server, [job])
    assert (accounts[job].outcome, accounts[job].attempts) == ("worker_lost", 1)


def test_a_cancel_outlives_the_server_that_was_asked(start_server: StartServer) -> None:
    """J6: the intent is durable before any signal is sent."""
    server = start(start_server)
    with server.client() as client:
        (job,) = submit(client, "work", 1, seconds=60)
        until_printed(client, job)
        worker = titled(server, "headway: worker")
        os.kill(worker, signal.SIGSTOP)
        client.cancel(job)
    for pid in (server.pid, worker):
        os.kill(pid, signal.SIGKILL)
    server.wait()
    accounts = assert_everything_accounted_for(start(start_server, port=server.port), [job])
    assert (accounts[job].outcome, accounts[job].attempts) == ("cancelled", 1)


def test_everything_killed_at_once_with_a_thousand_queued_and_four_running(
    start_server: StartServer,
) -> None:
    """J2, P16, trap 10: the queue is the store; a start wipes nothing."""
    server = start(start_server)
    with server.client() as client:
        running = submit(client, "work", 2, seconds=300) + submit(client, "hold", 2, seconds=300)
        for job in running:
            until_printed(client, job)
        queued = submit(client, "quick", 990) + submit(client, "work", 10, seconds=0.02)
    for pid in processes_of(server.state_dir):
        # Some die with those that were killed before them.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    server.wait()
    assert not processes_of(server.state_dir)
    jobs = [*running, *queued]
    stored = query(server.state_dir, "SELECT id FROM jobs WHERE ended_at_us IS NULL")
    assert {row[0] for row in stored} == set(jobs)
    accounts = assert_everything_accounted_for(start(start_server, port=server.port), jobs)
    assert {each.outcome for each in accounts.values()} == {"succeeded"}
    assert all(accounts[job].attempts == 2 for job in running), "what ran runs again, once"
    assert all(accounts[job].attempts == 1 for job in queued), "what was queued runs once"
