"""What a server may take: connections, threads; and what it says when there are no more."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import psutil
import pytest
from accounting import wait_until
from fault_server import submit, titled
from job_servers import JobServer, StartServer

OPERATIONS = Path(__file__).parent / "engine_ops.py"
THREADS = 128


@pytest.fixture(scope="module")
def server(start_module_server: StartServer) -> JobServer:
    lanes = ("--long", "1+0", "--short", "2+0", "--no-bench")
    return start_module_server(*lanes, operations=OPERATIONS)


def connections(process: psutil.Process, state_dir: Path) -> int:
    """How often a process has opened the database."""
    database = str(state_dir / "headway.db")
    return sum(each.path == database for each in process.open_files())


def test_every_process_keeps_to_the_connections_that_it_printed(server: JobServer) -> None:
    """J17: also after hundreds of jobs and requests; no other process has any."""
    printed = re.search(r"database connections: server (\d+), worker (\d+)", server.ready_line)
    assert printed is not None, server.ready_line
    with server.client() as client:
        jobs = submit(client, "quick", 300)
        for job in jobs[-20:]:
            client.wait(job, timeout_s=60)
    budget = {server.pid: int(printed[1]), titled(server, "headway: worker"): int(printed[2])}
    found = {each.pid: connections(each, server.state_dir) for each in server.tree()}
    assert {pid: count for pid, count in found.items() if count} == budget


def test_inline_threads_come_on_demand_and_then_the_server_says_that_it_is_full(
    server: JobServer, tmp_path: Path
) -> None:
    """J4: the 129th is refused with Retry-After, at once; when there is room, all is well."""
    go = tmp_path / "go"
    process = psutil.Process(server.pid)
    assert process.num_threads() < THREADS, "threads that nobody needs yet"
    with server.client() as client:
        jobs = submit(client, "wait_for_file", THREADS, path=str(go))
        wait_until(
            lambda: process.num_threads() >= THREADS, 60, lambda: f"{process.num_threads()} threads"
        )
        refused = httpx.post(
            f"{server.url}/v1/operations/wait_for_file", json={"input": {"path": str(go)}}
        )
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert submit(client, "quick", 1), "other lanes are not concerned"
        go.touch()
        jobs += submit(client, "wait_for_file", 1, path=str(go))  # the client waits and asks again
        for job in jobs:
            assert client.wait(job, timeout_s=60).outcome == "succeeded"
