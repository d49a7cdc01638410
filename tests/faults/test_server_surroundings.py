"""Real servers whose disk is full, whose database is locked, whose clock is set (J2, J5, J18)."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from textwrap import dedent

import httpx
import pytest
from accounting import assert_everything_accounted_for, query, wait_until
from fault_server import start, submit, until_printed
from job_servers import StartServer

from headway.client import Client, RetryPolicy, ServerBusy, ServerUnreachable

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 12 MiB where the server's state is."""
    disk = tmp_path / "state"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m", "headway-test", str(disk)]
    done = subprocess.run(mount, check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.fixture
def start_on_small_disk(small_disk: Path, start_server: StartServer) -> StartServer:
    """Servers over it; they end before it goes."""
    return start_server


def test_a_full_disk_costs_log_and_refusals_but_no_job(
    start_on_small_disk: StartServer, small_disk: Path
) -> None:
    """The disk fills while jobs run and are submitted; when there is room again, all goes on."""
    server = start(start_on_small_disk)
    with server.client() as client:
        (chatty,) = submit(client, "chatter", 1, mib=16)
        jobs = [chatty, *submit(client, "work", 1), *submit(client, "quick", 20)]
    # Its log takes the whole disk; what is left of that is taken here.
    wait_until(lambda: free_bytes(small_disk) < 65536, 60, lambda: "the disk does not fill")
    fill(small_disk / "filler")
    not_ready = None
    with Client(server.url, retry=RetryPolicy(patience_s=0.5)) as impatient:
        for number in range(400):
            try:
                jobs += submit(impatient, "quick", 1, number=number, text="x" * 20_000)
            except (ServerBusy, ServerUnreachable):
                not_ready = httpx.get(f"{server.url}/readyz", timeout=30)
                if not_ready.status_code == 503:  # smaller writes may have fitted a little longer
                    break
    assert not_ready is not None, "a full disk is said, not hidden"
    assert (not_ready.status_code, not_ready.headers["retry-after"]) == (503, "1")
    assert "full" in not_ready.json()["detail"]
    assert httpx.get(f"{server.url}/healthz", timeout=60).status_code == 200
    (small_disk / "filler").unlink()
    os.truncate(small_disk / "logs" / chatty / "1.log", 0)
    with server.client() as client:
        jobs += submit(client, "quick", 5)
        accounts = {job: client.wait(job, timeout_s=60).outcome for job in jobs[-5:]}
    assert set(accounts.values()) == {"succeeded"}
    stored = {str(row[0]) for row in query(server.state_dir, "SELECT id FROM jobs")}
    assert set(jobs) <= stored, "what was answered with 202 is kept"
    ended = assert_everything_accounted_for(server, stored)
    assert {each.outcome for each in ended.values()} == {"succeeded"}


def free_bytes(path: Path) -> int:
    facts = os.statvfs(path)
    return facts.f_bavail * facts.f_frsize


def fill(path: Path) -> None:
    """Write until nothing fits any more."""
    with path.open("wb", buffering=0) as file:
        size = 1024 * 1024
        while size >= 1:
            try:
                os.write(file.fileno(), b"\0" * size)
            except OSError:
                size //= 2


def test_a_database_locked_by_another_process_is_waited_for(
    start_server: StartServer, tmp_path: Path
) -> None:
    """Someone's shell or backup holds SQLite's lock for longer than SQLite itself waits."""
    # Longer than the lock is held: nobody can renew a lease meanwhile, and whose lease is over
    # would run again, rightly.
    config = tmp_path / "serve.yaml"
    config.write_text("lease_s: 90\n")
    server = start(start_server, "--config", str(config))
    with server.client() as client:
        jobs = submit(client, "work", 2, seconds=1) + submit(client, "quick", 10)
        until_printed(client, jobs[0])
        with closing(
            sqlite3.connect(server.state_dir / "headway.db", isolation_level=None)
        ) as other:
            other.execute("BEGIN IMMEDIATE")
            assert client.get(jobs[0]).id == jobs[0], "reads go on"
            with (
                Client(server.url, retry=RetryPolicy(patience_s=0.5)) as impatient,
                pytest.raises((ServerBusy, ServerUnreachable)),
            ):
                submit(impatient, "quick", 1)
            not_ready = httpx.get(f"{server.url}/readyz", timeout=30)
            assert not_ready.status_code == 503
            assert "lock" in not_ready.json()["detail"]
            other.execute("ROLLBACK")
        jobs += submit(client, "quick", 5)
    stored = {str(row[0]) for row in query(server.state_dir, "SELECT id FROM jobs")}
    assert set(jobs) <= stored
    accounts = assert_everything_accounted_for(server, stored)
    assert {each.outcome for each in accounts.values()} == {"succeeded"}
    assert all(accounts[job].attempts == 1 for job in jobs)


STEPPED_CLOCK = """
    # Python imports this module at its start: every process of the server sees the stepped clock.
    import os
    from datetime import UTC, datetime, timedelta

    try:
        from headway.core.clock import SystemClock
    except ImportError:
        SystemClock = None

    def now(self):
        with open({offset!r}) as file:
            return datetime.now(UTC) + timedelta(seconds=float(file.read() or 0))

    if SystemClock is not None:
        SystemClock.now = now
"""


@pytest.mark.parametrize("step_s", [-7200.0, 7200.0], ids=["back", "forward"])
def test_a_stepped_wall_clock_neither_ends_nor_holds_up_a_job(
    start_server: StartServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step_s: float
) -> None:
    """NTP sets the clock by two hours while jobs run, wait to be retried, and are submitted."""
    offset = tmp_path / "offset"
    offset.write_text("0")
    (tmp_path / "sitecustomize.py").write_text(dedent(STEPPED_CLOCK).format(offset=str(offset)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    config = tmp_path / "serve.yaml"
    config.write_text("lease_s: 4\n")
    server = start(start_server, "--config", str(config))
    with server.client() as client:
        jobs = submit(client, "work", 2, seconds=3)
        for job in jobs:
            until_printed(client, job)
        waiting = submit(client, "backs_off", 1)
        wait_until(
            lambda: client.get(waiting[0]).wait_reason == "backoff", 30, lambda: "no backoff"
        )
        replace(offset, str(step_s))
        jobs += waiting + submit(client, "quick", 5) + submit(client, "twice", 2)
    accounts = assert_everything_accounted_for(server, jobs, limit_s=40)
    assert {each.outcome for each in accounts.values()} == {"succeeded"}
    assert all(accounts[job].attempts == 1 for job in jobs[:2]), "no lease was lost"


def replace(path: Path, text: str) -> None:
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").replace(path)
