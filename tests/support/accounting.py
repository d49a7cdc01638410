"""The one question that every fault is followed by: is everything accounted for?

It reads the database file, the process table and the directories themselves, and asks no part of
Headway: what is wrong there must not be able to hide.
"""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from job_servers import JobServer

from headway.core.clock import monotonic_ns, ns_from_s

LIMIT_S = 90.0
ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")


@dataclass(frozen=True)
class Account:
    """What became of one job."""

    state: str
    outcome: str
    attempts: int
    released: int
    crashes: int
    events: tuple[str, ...]


def assert_everything_accounted_for(
    server: JobServer, jobs: Iterable[str], limit_s: float = LIMIT_S
) -> dict[str, Account]:
    """Wait until every job has ended, stop the server, and look at everything that is left.

    No job is lost, none is stuck, none has two outcomes; no process lives, the port is free,
    temp directories, sockets and files of unknown jobs are gone.

    Args:
        server: Running, after whatever was done to it.
        jobs: Everything that was ever submitted to its state directory.
        limit_s: For the jobs to end.
    """
    ids = set(jobs)
    wait_until(lambda: not unfinished(server), limit_s, lambda: f"stuck: {unfinished(server)}")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    accounts = read_accounts(server.state_dir)
    assert set(accounts) == ids, "jobs lost, or jobs that nobody submitted"
    for job_id, account in accounts.items():
        _assert_one_outcome(job_id, account)
    _assert_nothing_left(server, ids)
    return accounts


def unfinished(server: JobServer) -> dict[str, str]:
    """The jobs that have not ended, with their state."""
    marks = ",".join("?" * len(ENDED))
    return dict(
        query(server.state_dir, f"SELECT id, state FROM jobs WHERE state NOT IN ({marks})", *ENDED)
    )


def read_accounts(state_dir: Path) -> dict[str, Account]:
    """Every job of a state directory."""
    events: dict[int, list[str]] = {}
    for sequence, kind in query(
        state_dir, "SELECT sequence, kind FROM events ORDER BY sequence, number"
    ):
        events.setdefault(sequence, []).append(kind)
    held = query(state_dir, "SELECT id FROM jobs WHERE owner IS NOT NULL AND state != 'RUNNING'")
    assert not held, "ended jobs that somebody still owns"
    return {
        row[1]: Account(*row[2:], tuple(events.get(row[0], ())))
        for row in query(
            state_dir,
            "SELECT sequence, id, state, outcome, attempt, released, crashes FROM jobs",
        )
    }


def query(state_dir: Path, sql: str, *parameters: str) -> list[tuple[object, ...]]:
    """Rows of the server's database, read beside it."""
    with closing(sqlite3.connect(state_dir / "headway.db", timeout=30)) as connection:
        return connection.execute(sql, parameters).fetchall()


def processes_of(state_dir: Path) -> dict[int, str]:
    """Living processes of a state directory: by their arguments, environment and open files.

    A grandchild in a session of its own still has its job's environment and log pipe.
    """
    found = {}
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit() and int(directory.name) != os.getpid():
            try:
                if _mentions(directory, str(state_dir)):
                    found[int(directory.name)] = (directory / "cmdline").read_text(
                        "utf-8", "replace"
                    )
            except OSError:
                continue  # it ended while it was looked at
    return found


def wait_until(holds: Callable[[], bool], limit_s: float, failed: Callable[[], str]) -> None:
    """Poll a condition that has no event of its own."""
    deadline_ns = monotonic_ns() + ns_from_s(limit_s)
    while not holds():
        assert monotonic_ns() < deadline_ns, failed()
        time.sleep(0.05)


def _assert_one_outcome(job_id: str, account: Account) -> None:
    kinds = Counter(account.events)
    history = f"{job_id}: {account}"
    assert account.outcome, history
    assert (kinds["submitted"], kinds["ended"]) == (1, 1), history
    assert account.events[-1] == "ended", f"something was written after the end: {history}"
    assert kinds["claimed"] == account.attempts, history
    assert kinds["released"] == account.released, history
    put_back = kinds["retry"] + kinds["released"]
    # As many as there were attempts when it was cancelled while it waited for the next one.
    assert put_back in (account.attempts - 1, account.attempts), history


def _assert_nothing_left(server: JobServer, ids: set[str]) -> None:
    state_dir = server.state_dir
    wait_until(
        lambda: not processes_of(state_dir), 20, lambda: f"orphans: {processes_of(state_dir)}"
    )
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", server.port))
    assert not list((state_dir / "tmp").iterdir()), "temp directories stayed"
    assert not list((state_dir / "run" / "bells").iterdir()), "sockets stayed"
    for kept in ("logs", "artifacts", "results", "work"):
        unknown = {path.name for path in (state_dir / kept).iterdir()} - ids
        assert not unknown, f"{kept} of jobs that are not in the database"
    twice = query(
        state_dir,
        "SELECT id FROM jobs JOIN attempts USING (sequence)"
        " WHERE attempts.outcome = 'succeeded' GROUP BY id HAVING count(*) > 1",
    )
    assert not twice, "two attempts of one job succeeded"


def _mentions(process: Path, text: str) -> bool:
    if (process / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0] in "ZX":
        return False
    sought = text.encode()
    if any(sought in (process / name).read_bytes() for name in ("cmdline", "environ")):
        return True
    links = [process / "cwd", *(process / "fd").iterdir()]
    return any(text in os.readlink(link) for link in links if link.is_symlink())
