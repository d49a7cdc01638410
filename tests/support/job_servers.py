"""A real job server: `headway serve` as its own process, and the command line to speak to it.

A pytest plugin (`tests/conftest.py` names it), so that every folder of tests has its fixtures.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from headway.client import Client
from headway.core.clock import monotonic_ns, ns_from_s, s_from_ns

READY_S = 120.0
STOP_S = 60.0
COMMAND_S = 120.0
OPERATIONS = Path(__file__).parents[1] / "e2e" / "jobs_ops.py"


@dataclass
class JobServer:
    """A running server, and everything that belongs to it."""

    url: str
    process: subprocess.Popen[bytes]
    state_dir: Path
    log_path: Path
    ready_line: str

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def pid(self) -> int:
        return self.process.pid

    def client(self) -> Client:
        return Client(self.url)

    def headway(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run `headway ARGUMENTS` against this server."""
        return subprocess.run(
            [sys.executable, "-m", "headway.cli.main", *arguments],
            env=self.environ, text=True, capture_output=True, timeout=COMMAND_S, check=False,
            **options,
        )  # fmt: skip

    @property
    def environ(self) -> dict[str, str]:
        return {**os.environ, "HEADWAY_SERVER": self.url}

    def log(self) -> list[dict[str, Any]]:
        """The server's own log."""
        return [json.loads(line) for line in self.log_path.read_text().splitlines()]

    def tree(self) -> list[psutil.Process]:
        """Every process of the server: its own, the worker's, the forkserver's, the jobs'."""
        return [psutil.Process(self.pid), *psutil.Process(self.pid).children(recursive=True)]

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self, timeout_s: float = STOP_S) -> int:
        return self.process.wait(timeout_s)

    def stop(self) -> None:
        """End the server however it stands, and leave no process behind."""
        if self.process.poll() is None:
            tree = self.tree()
            self.signal(signal.SIGTERM)
            self.signal(signal.SIGTERM)
            try:
                self.wait()
            except subprocess.TimeoutExpired:
                for process in tree:
                    if process.is_running():
                        process.kill()
                self.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


StartServer = Callable[..., JobServer]


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[StartServer]:
    """Starts servers over one state directory: `start_server("--drain-s", "1")`."""
    with _servers(tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def start_module_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartServer]:
    """Like `start_server`, for a server that the tests of a module share."""
    with _servers(tmp_path_factory.mktemp("server")) as start:
        yield start


@pytest.fixture(scope="module")
def server(start_module_server: StartServer) -> JobServer:
    """One server that the tests of a module share."""
    return start_module_server()


@contextmanager
def _servers(directory: Path) -> Iterator[StartServer]:
    started: list[JobServer] = []

    def start(*flags: str, operations: Path = OPERATIONS, port: int = 0) -> JobServer:
        log_path = directory / f"server-{len(started)}.log"
        server = _start(directory / "state", log_path, operations, port, flags)
        started.append(server)
        return server

    try:
        yield start
    finally:
        for server in started:
            server.stop()


def _start(
    state_dir: Path, log_path: Path, operations: Path, port: int, flags: tuple[str, ...]
) -> JobServer:
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [
                sys.executable, "-m", "headway.cli.main", "serve", "--operations", str(operations),
                "--port", str(port), "--state-dir", str(state_dir), *flags,
            ],
            stdout=subprocess.PIPE, stderr=log,
        )  # fmt: skip
    try:
        line = _first_line(process)
        url = line.partition(" at ")[2].split()[0]
    except BaseException as error:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
        raise AssertionError(f"no server: {log_path.read_text()}") from error
    return JobServer(url, process, state_dir, log_path, line)


def _first_line(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    deadline_ns = monotonic_ns() + ns_from_s(READY_S)
    line = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not selector.select(max(0.0, s_from_ns(deadline_ns - monotonic_ns()))):
                raise TimeoutError("the server did not say that it is ready")
            piece = os.read(process.stdout.fileno(), 65536)
            if not piece:
                raise RuntimeError("the server ended before it was ready")
            line += piece
    return line.decode()
