"""A real server with the fault suite's operations, and what its tests do with it."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psutil
from job_servers import JobServer, StartServer

from headway.client import Client, JobRequest, LogChunk

OPERATIONS = Path(__file__).parents[1] / "faults" / "server_ops.py"
LANES = ("--long", "2+0", "--short", "2+0", "--drain-s", "10", "--no-bench")

Jobs = list[str]


def start(start_server: StartServer, *flags: str, port: int = 0) -> JobServer:
    """A server with two slots in each lane; `flags` go over the usual ones."""
    return start_server(*LANES, *flags, operations=OPERATIONS, port=port)


def submit(client: Client, operation: str, count: int, **fields: Any) -> Jobs:
    """Submit equal jobs in one commit."""
    requests = [JobRequest(operation=operation, input=fields) for _ in range(count)]
    return [job.id for job in client.submit_batch(requests)]


def until_printed(client: Client, job_id: str) -> list[int]:
    """Wait for a job's first line; the numbers in it."""
    said = next(said for said in client.follow(job_id) if isinstance(said, LogChunk))
    return [int(word) for word in said.text.split() if word.isdigit()]


@contextmanager
def second_worker(server: JobServer) -> Iterator[int]:
    """Another worker beside the server's own, ready; the process id of its keeper."""
    process = subprocess.Popen(
        [
            sys.executable, "-m", "headway.cli.main", "worker", "--no-bench", "--drain-s", "5",
            "--operations", str(OPERATIONS), "--state-dir", str(server.state_dir),
            "--long", "2", "--short", "2",
        ],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        assert b"ready" in process.stdout.readline()
        yield process.pid
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


def titled(server: JobServer, title: str) -> int:
    """The server's process with this title."""
    return next(each.pid for each in server.tree() if title in _title(each))


def _title(process: psutil.Process) -> str:
    """What a process calls itself; nothing when it has ended since it was found."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def dead(pid: int) -> bool:
    """Whether a process has ended, reaped or not."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def stop_within_a_write(server: JobServer, pid: int) -> None:
    """Stop a process again and again, until it stands still with the database locked."""
    for _ in range(2000):
        os.kill(pid, signal.SIGSTOP)
        if write_locked(server):
            return
        os.kill(pid, signal.SIGCONT)
    raise AssertionError("it was never met within a write")


def write_locked(server: JobServer) -> bool:
    """Whether somebody who does not let go has the database locked for writing."""
    with closing(
        sqlite3.connect(server.state_dir / "headway.db", isolation_level=None, timeout=0.3)
    ) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        connection.execute("ROLLBACK")
        return False
