"""What every benchmark of the job engine shares: the measured server, clients, tables.

Each budget is measured on `headway serve` as anybody would start it, in a state directory of its
own on the file system that TMPDIR names. Headway and its peers run one after another, several times
in one run, so that a busy moment of the machine hits all of them.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import platform
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from headway.client import Client

HERE = Path(__file__).parent
START_S = 60.0
ROUNDS = 3


# --- the server ------------------------------------------------------------------------------


class Server:
    """`headway serve` with the benchmarks' operations.

    Args:
        state_dir: Kept when the server ends, for the next one.
        arguments: More flags.
    """

    def __init__(self, state_dir: Path, *arguments: str) -> None:
        self.state_dir = state_dir
        self._errors = (state_dir / "server.log").open("ab")
        self.began_s = time.monotonic()
        self.process = subprocess.Popen(
            [
                *headway(), "serve", "--operations", str(HERE / "operations.py"), "--port", "0",
                "--state-dir", str(state_dir), *arguments,
            ],
            stdout=subprocess.PIPE, stderr=self._errors,
        )  # fmt: skip
        assert self.process.stdout is not None
        ready = self.process.stdout.readline().decode()
        self.ready_s = time.monotonic() - self.began_s
        if "ready at" not in ready:
            raise SystemExit(f"the server did not start; see {state_dir / 'server.log'}")
        self.url = ready.split()[4]
        self.port = int(self.url.rpartition(":")[2])

    def client(self) -> Client:
        return Client(self.url)

    def pids(self) -> list[int]:
        """Every process of the server."""
        return tree(self.process.pid)

    def kill_everything(self) -> None:
        """kill -9 for the server, its worker, the forkserver and every job, at once."""
        pids = self.pids()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        wait_until(lambda: not any(is_alive(pid) for pid in pids), 10)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self._errors.close()

    def database(self) -> sqlite3.Connection:
        """What the store has, to count in."""
        return sqlite3.connect(f"file:{self.state_dir / 'headway.db'}?mode=ro", uri=True)

    def count(self, sql: str) -> int:
        with contextlib.closing(self.database()) as connection:
            return int(connection.execute(sql).fetchone()[0])


def headway() -> list[str]:
    """The command, from the interpreter that runs the benchmark."""
    return [sys.executable, "-m", "headway.cli.main"]


@contextlib.contextmanager
def server(*arguments: str) -> Iterator[Server]:
    """A server on an empty state directory."""
    with scratch() as directory:
        started = Server(directory, *arguments)
        try:
            yield started
        finally:
            started.stop()


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="headway-bench-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


class Poster:
    """Posts jobs singly from several connections that stay open, with as little work as possible.

    The SDK costs more for a request than the server does; what is asked here is what the server
    can take.
    """

    def __init__(self, port: int, operation: str, connections: int = 8) -> None:
        self._port = port
        self._path = f"/v1/operations/{operation}"
        self._connections = connections

    def post(self, count: int) -> None:
        """Post `count` jobs and wait for every answer."""
        numbers = iter(range(count))
        lock = threading.Lock()
        failures: list[str] = []

        def one_connection() -> None:
            connection = http.client.HTTPConnection("127.0.0.1", self._port)
            connection.connect()
            while not failures:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    break
                connection.request(
                    "POST", self._path, b'{"input":{"n":%d}}' % number,
                    {"content-type": "application/json"},
                )  # fmt: skip
                answer = connection.getresponse()
                body = answer.read()
                if answer.status != 202:
                    failures.append(body.decode())
            connection.close()

        threads = [threading.Thread(target=one_connection) for _ in range(self._connections)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise SystemExit(failures[0])


def wait_idle(port: int) -> None:
    """Wait until no job waits or runs."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for state in ("PENDING", "RUNNING"):
        while True:
            connection.request("GET", f"/v1/jobs?state={state}&limit=1")
            if not json.loads(connection.getresponse().read())["jobs"]:
                break
            time.sleep(0.05)  # each question costs the server a millisecond
    connection.close()


def timed_ms(call: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    call()
    return (time.perf_counter() - began_s) * 1000


# --- processes -------------------------------------------------------------------------------


def tree(root: int) -> list[int]:
    """A process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                stat = Path(f"/proc/{entry}/stat").read_text()
                parent = int(stat.rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry))
    found, left = [], [root]
    while left:
        pid = left.pop()
        found.append(pid)
        left += children.get(pid, [])
    return found


def pss_mib(pids: Sequence[int]) -> float:
    """Proportional set sizes: pages that processes share count once."""
    total_kib = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total_kib += int(line.split()[1])
    return total_kib / 1024


def cpu_s(pids: Sequence[int]) -> float:
    """CPU time that these processes, and their children that were waited for, have used."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def is_alive(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def wait_until(condition: Callable[[], bool], limit_s: float, every_s: float = 0.001) -> bool:
    until_s = time.monotonic() + limit_s
    while time.monotonic() < until_s:
        if condition():
            return True
        time.sleep(every_s)
    return False


# --- tables ----------------------------------------------------------------------------------


class Rounds:
    """Several values of one measurement, one a round: their median and their spread."""

    def __init__(self, digits: int = 1) -> None:
        self.values: list[float] = []
        self._digits = digits

    def add(self, value: float) -> None:
        self.values.append(value)

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def __str__(self) -> str:
        low, high = min(self.values), max(self.values)
        d = self._digits
        return f"{self.median:,.{d}f} ({low:,.{d}f} to {high:,.{d}f})"


def percentile(values: Sequence[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


class Latencies:
    """Latencies in ms of several rounds; percentiles of each round, medians of those."""

    def __init__(self) -> None:
        self.p50, self.p99 = Rounds(2), Rounds(2)

    def add(self, values_ms: Sequence[float]) -> None:
        self.p50.add(percentile(values_ms, 50))
        self.p99.add(percentile(values_ms, 99))


def title(text: str, notes: str = "") -> None:
    """A section's heading, with what it was measured on.

    From here a SIGTERM, as `timeout` sends it, stops the servers and peers as the end does.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped by SIGTERM"))
    names = ("fastapi", "uvicorn", "uvloop", "httptools", "pydantic", "msgspec")
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in names)
    print(f"\n### {text}\n")
    print(
        f"`{command_line()}`, {time.strftime('%Y-%m-%d %H:%M')}, load average before "
        f"{os.getloadavg()[0]:.1f}, {len(os.sched_getaffinity(0))} cores, Linux "
        f"{platform.release()}, Python {platform.python_version()}, SQLite "
        f"{sqlite3.sqlite_version}, {versions}, fsync {fsync_ms():.2f} ms{notes}\n",
        flush=True,
    )


def fsync_ms() -> float:
    """Median of a small synced write where the state directory will be."""
    with tempfile.TemporaryFile() as file:
        took = []
        for _ in range(50):
            file.write(b"x" * 4096)
            file.flush()
            took.append(timed_ms(lambda: os.fsync(file.fileno())))
    return statistics.median(took)


def row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def header(*cells: str) -> None:
    row(*cells)
    row(*("---" for _ in cells))


def verdict(budget: str, text: str, met: bool) -> None:
    """One line that says whether a budget holds."""
    print(f"\n{budget}: {text}: {'met' if met else 'MISSED'}", flush=True)


def command_line() -> str:
    """How this script was started."""
    arguments = " ".join(sys.argv[1:])
    return f"python benchmarks/jobs/{Path(sys.argv[0]).name} {arguments}".rstrip()


def log_lines(client: Client, job_id: str, count: int, limit_s: float = 30.0) -> list[str]:
    """The first lines of a running job's log."""
    lines: list[str] = []

    def enough() -> bool:
        lines[:] = "".join(client.logs(job_id)).splitlines()
        return len(lines) >= count

    if not wait_until(enough, limit_s, 0.01):
        raise SystemExit(f"job {job_id} printed {len(lines)} lines, not {count}")
    return lines


def loads(text: str) -> Any:
    return json.loads(text)
