"""A real server, and its service manager, which the tests play: a datagram socket (J18)."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import httpx
import psutil
import pytest
from accounting import assert_everything_accounted_for, query, wait_until
from fault_server import OPERATIONS, start, stop_within_a_write, submit, until_printed
from job_servers import JobServer, StartServer

from headway.client import Client, RetryPolicy, ServerBusy, ServerUnreachable
from headway.core.clock import monotonic_ns, ns_from_s, s_from_ns

pytestmark = pytest.mark.timeout(240)

WATCHDOG_S = 2.0
DEADLINE_S = 60.0
SHM_LOCKS_AT, SHM_LOCKS = 120, 8
"""Where SQLite's locks of a database in WAL mode are: one of writers, one of checkpoints, one of
recovery, and those of readers. Source: sqlite.org/walformat.html."""


class Manager:
    """A service manager's end of the notification socket."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening

    def until(self, line: str, deadline_s: float = DEADLINE_S) -> list[str]:
        """The lines up to one that begins so; fails when none comes."""
        deadline_ns, lines = monotonic_ns() + ns_from_s(deadline_s), list[str]()
        while not any(each.startswith(line) for each in lines):
            left_s = s_from_ns(deadline_ns - monotonic_ns())
            assert left_s > 0, f"no {line} but {lines}"
            self._listening.settimeout(left_s)
            with suppress(TimeoutError):
                lines += self._listening.recv(65536).decode().split("\n")
        return lines

    def read_what_is_there(self) -> list[str]:
        """What was sent before now."""
        lines = list[str]()
        self._listening.settimeout(0.0)
        with suppress(BlockingIOError):
            while True:
                lines += self._listening.recv(65536).decode().split("\n")
        return lines

    def silence(self) -> list[str]:
        """What comes within three times that of the watchdog."""
        deadline_ns, lines = monotonic_ns() + ns_from_s(3 * WATCHDOG_S), list[str]()
        with suppress(TimeoutError):
            while (left_s := s_from_ns(deadline_ns - monotonic_ns())) > 0:
                self._listening.settimeout(left_s)
                lines += self._listening.recv(65536).decode().split("\n")
        return lines


@pytest.fixture(params=["path", "abstract"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "notify") if request.param == "path" else f"@headway-test-{tmp_path.name}"


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Manager]:
    """A manager that started whatever is started from here on."""
    with managing(str(tmp_path / "notify"), monkeypatch) as manager:
        yield manager


@contextmanager
def managing(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Manager]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(address.replace("@", "\0", 1))
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        monkeypatch.setenv("WATCHDOG_USEC", str(int(WATCHDOG_S * 1_000_000)))
        yield Manager(listening)


def test_a_server_says_that_it_serves_that_it_lives_and_that_it_stops(
    start_server: StartServer, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with managing(address, monkeypatch) as manager:
        server = start(start_server)
        first = manager.until("READY=1")
        assert first == ["READY=1", f"STATUS=serving at {server.url}"], "nothing comes before"
        assert httpx.get(f"{server.url}/readyz", timeout=60).status_code == 200
        for _ in range(3):
            manager.until("WATCHDOG=1")
        with server.client() as client:
            (job,) = submit(client, "work", 1, seconds=300)
            until_printed(client, job)
        server.signal(signal.SIGTERM)
        manager.until("STOPPING=1")
        manager.until("WATCHDOG=1")  # what drains is not taken for dead
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        assert "READY=1" not in manager.read_what_is_there()


def test_a_server_that_is_not_the_watched_process_gives_no_sign_of_life(
    start_server: StartServer, manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    start(start_server)
    manager.until("READY=1")
    assert manager.silence() == []


def test_a_stopped_server_gives_no_sign_of_life_and_goes_on_when_it_is_let(
    start_server: StartServer, manager: Manager
) -> None:
    server = start(start_server)
    manager.until("WATCHDOG=1")
    os.kill(server.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: stopped(server.pid), DEADLINE_S, lambda: "it does not stop")
        manager.read_what_is_there()
        assert manager.silence() == []
    finally:
        os.kill(server.pid, signal.SIGCONT)
    manager.until("WATCHDOG=1")


def stopped(pid: int) -> bool:
    return psutil.Process(pid).status() == psutil.STATUS_STOPPED


def test_no_sign_of_life_comes_while_another_process_keeps_the_store_from_being_read(
    start_server: StartServer, manager: Manager
) -> None:
    server = start(start_server)
    manager.until("WATCHDOG=1")
    with locked_against_readers(server):
        manager.until("STATUS=no sign of life")
        assert manager.silence() == []
        assert httpx.get(f"{server.url}/healthz", timeout=60).status_code == 200, "its loop turns"
    lines = manager.until("WATCHDOG=1")
    assert lines == [f"STATUS=serving at {server.url}", "WATCHDOG=1"]


@contextmanager
def locked_against_readers(server: JobServer) -> Iterator[None]:
    code = (
        "import fcntl, sys\n"
        "file = open(sys.argv[1], 'r+b')\n"
        f"fcntl.lockf(file, fcntl.LOCK_EX, {SHM_LOCKS}, {SHM_LOCKS_AT})\n"
        "print('locked', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(server.state_dir / "headway.db-shm")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as locker:  # fmt: skip
        assert locker.stdout is not None
        assert locker.stdout.readline() == b"locked\n"
        yield  # leaving the block closes its input, which ends it


def test_a_lock_that_only_keeps_writers_out_is_no_reason_to_be_replaced(
    start_server: StartServer, manager: Manager
) -> None:
    """Somebody's backup or shell: a restart would not free it, and would give back what runs."""
    server = start(start_server)
    manager.until("WATCHDOG=1")
    with closing(sqlite3.connect(server.state_dir / "headway.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        manager.read_what_is_there()
        for _ in range(4):
            manager.until("WATCHDOG=1")
        other.execute("ROLLBACK")


def test_a_server_stopped_within_a_write_is_replaced_and_no_job_is_lost(
    start_server: StartServer, manager: Manager
) -> None:
    """It holds SQLite's lock, so its own worker can store nothing either. Without signs of life
    the manager ends it, as Restart=on-failure does, and the next one does all that was accepted.
    """
    server = start(start_server)
    manager.until("WATCHDOG=1")
    with server.client() as client:
        (running,) = submit(client, "work", 1, seconds=300)
        until_printed(client, running)
    with submitting(server) as accepted:
        stop_within_a_write(server, server.pid)
        manager.read_what_is_there()
        assert manager.silence() == []
        server.signal(signal.SIGKILL)
        server.wait()
    again = start(start_server)
    manager.until("READY=1")
    stored = {str(row[0]) for row in query(again.state_dir, "SELECT id FROM jobs")}
    assert {running, *accepted} <= stored
    accounts = assert_everything_accounted_for(again, stored)
    assert {each.outcome for each in accounts.values()} == {"succeeded"}
    assert accounts[running].attempts == 2


@contextmanager
def submitting(server: JobServer) -> Iterator[set[str]]:
    """Submit jobs until the server is gone; the ids of those that it took."""
    accepted = set[str]()

    def flood() -> None:
        impatient = Client(server.url, retry=RetryPolicy(patience_s=0.5))
        with impatient as client:
            while server.process.poll() is None:
                with suppress(ServerBusy, ServerUnreachable):
                    accepted.update(submit(client, "quick", 50))

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        yield accepted
    finally:
        thread.join(2 * DEADLINE_S)
        assert not thread.is_alive()


def test_an_abort_shows_where_the_server_stood(start_server: StartServer) -> None:
    """By SIGABRT a watchdog ends what hangs."""
    server = start(start_server)
    server.signal(signal.SIGABRT)
    assert server.wait() == -signal.SIGABRT
    log = server.log_path.read_text()
    assert "Fatal Python error: Aborted" in log
    assert "headway/cli/serve.py" in log


def test_the_keeper_of_a_worker_tells_its_service_manager_too(
    manager: Manager, tmp_path: Path
) -> None:
    command = [
        sys.executable, "-m", "headway.cli.main", "worker", "--no-bench", "--name", "second",
        "--operations", str(OPERATIONS), "--state-dir", str(tmp_path / "state"),
        "--long", "1", "--short", "1",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as keeper:
        try:
            assert manager.until("READY=1") == ["READY=1", "STATUS=keeping the worker second"]
            for _ in range(2):
                manager.until("WATCHDOG=1")
            keeper.send_signal(signal.SIGTERM)
            manager.until("STOPPING=1")
            assert keeper.wait(DEADLINE_S) == 0
        finally:
            keeper.kill()
