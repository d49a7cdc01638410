"""Fixtures for every test: the simulated inference server as a real process."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from headway.core.clock import monotonic_ns, ns_from_s, s_from_ns

pytest_plugins = ("job_servers",)

# A busy machine may be slow at whatever it does; that is no finding. What fails prints how to see
# it again.
settings.register_profile(
    "headway", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("headway")

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 10.0


@dataclass
class SimHandle:
    """A simulated server that runs for the length of one test."""

    url: str
    port: int | None
    process: subprocess.Popen[bytes]
    truth_path: Path
    ready: dict[str, Any] = field(default_factory=dict)

    @property
    def pid(self) -> int:
        return self.process.pid

    def truth(
        self, at_least: int = 0, timeout_s: float = 10.0, since_ns: int = 0
    ) -> list[dict[str, Any]]:
        """The exchanges that have ended, in that order; waits until there are `at_least`.

        The running server writes them a few times a second; after `stop` the list is whole. Of a
        server that other tests use too, take those that arrived since this one began.
        """
        deadline_ns = monotonic_ns() + ns_from_s(timeout_s)
        while len(lines := self._truth_lines(since_ns)) < at_least:
            if monotonic_ns() > deadline_ns:
                raise TimeoutError(f"the truth log has {len(lines)} of {at_least} exchanges")
            time.sleep(0.02)
        return lines

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End the server; returns its exit code. Safe to call twice."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(number)
        try:
            return self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            if self.process.stdout:
                self.process.stdout.close()

    def _truth_lines(self, since_ns: int) -> list[dict[str, Any]]:
        if not self.truth_path.exists():
            return []
        whole = self.truth_path.read_bytes().rpartition(b"\n")[0]
        lines = [json.loads(line) for line in whole.splitlines()]
        return [line for line in lines if line["arrival_ns"] >= since_ns]


SimFactory = Callable[..., SimHandle]


@pytest.fixture
def sim(tmp_path: Path) -> Iterator[SimFactory]:
    """A factory of simulated servers: `sim(ttft=0.02, itl=0.005, fault="error:rate=0.1")`.

    A keyword is an option of `headway sim`: underscores become dashes, a list repeats the option,
    True is a bare flag. Each server is a process of its own on a free port and ends with the test.
    """
    with _factory(tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def module_sim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimFactory]:
    """Like `sim`, for servers that the tests of a module share."""
    with _factory(tmp_path_factory.mktemp("sim")) as start:
        yield start


@contextmanager
def _factory(directory: Path) -> Iterator[SimFactory]:
    handles: list[SimHandle] = []

    def start(**options: Any) -> SimHandle:
        handle = _start(options, directory / f"truth-{len(handles)}.jsonl")
        handles.append(handle)
        return handle

    try:
        yield start
    finally:
        for handle in handles:
            handle.stop()


def _start(options: dict[str, Any], truth_path: Path) -> SimHandle:
    arguments = [sys.executable, "-m", "headway.sim", "--die-with-parent"]
    arguments += ["--truth-log", str(truth_path)]
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            arguments.append(flag)
        elif value is not False and value is not None:
            for one in value if isinstance(value, list | tuple) else [value]:
                arguments += [flag, str(one)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, env=dict(os.environ))
    try:
        ready = json.loads(_read_line(process))
    except BaseException:
        process.kill()
        process.wait()
        raise
    return SimHandle(ready["url"], ready.get("port"), process, truth_path, ready)


def _read_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    deadline_ns = monotonic_ns() + ns_from_s(READY_TIMEOUT_S)
    line = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not selector.select(max(0.0, s_from_ns(deadline_ns - monotonic_ns()))):
                raise TimeoutError("the simulated server did not say that it is ready")
            piece = os.read(process.stdout.fileno(), 65536)
            if not piece:
                raise RuntimeError(f"the simulated server ended with {process.wait()}")
            line += piece
    return line
