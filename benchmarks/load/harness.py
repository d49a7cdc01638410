"""What every benchmark of the load engine shares: servers, peers, the measured command, tables.

Each measurement of a budget runs Headway and its peers one after another, several times, so that a
busy moment of the machine hits all of them; medians are compared and the spread is shown.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from headway.cli.exit_codes import ExitCode
from headway.records.run_dir import RunDirectory

HERE = Path(__file__).parent
CONNECTIONS = 64
PROMPT_TOKENS = 16
REPLY_TOKENS = 8


def client_core() -> int:
    """The core that clients under comparison are pinned to."""
    return min(os.sched_getaffinity(0))


def server_core() -> int:
    """The core that servers are pinned to, away from the clients."""
    return max(os.sched_getaffinity(0))


class Server:
    """A server process on its own core, which prints its port, or a JSON line that holds it."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE)
        os.sched_setaffinity(self.process.pid, {server_core()})
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        self.port = int(line) if line.strip().isdigit() else int(json.loads(line)["port"])
        self.url = f"http://127.0.0.1:{self.port}"

    @property
    def cpu_s(self) -> float:
        """CPU time that it has used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()


def prepared(chunks: int) -> Server:
    """The server with prepared replies: of `chunks` events in one write, or (0) no stream."""
    return Server([str(HERE / "canned_server.py"), "--chunks", str(chunks)])


def simulated(*options: str) -> Server:
    """The simulated inference server."""
    return Server(["-m", "headway.sim", "--die-with-parent", *options])


class BenchRun:
    """One `headway bench` that has ended, and what it left."""

    def __init__(self, path: Path, began_ns: int, ended_ns: int, cpu_s: float, peak: Peak) -> None:
        self.directory = RunDirectory(path)
        self.began_ns = began_ns
        self.ended_ns = ended_ns
        self.cpu_s = cpu_s
        """Of the command and all its children."""
        self.peak = peak
        self.records = [r for r in self.directory.records() if r.sent_ns is not None]
        events = list(self.directory.events())
        self.start_ns = next(
            e.started_monotonic_ns for e in events if type(e).__name__ == "StageStarted"
        )
        self.samples = [e for e in events if type(e).__name__ == "WorkerSample"]

    @property
    def worker_cpu_us(self) -> float:
        """CPU of the workers for each request, while it was measured (once a second)."""
        until_ns = max((sample.at_ns for sample in self.samples), default=0)
        ended = sum(1 for r in self.records if r.done_ns is not None and r.done_ns <= until_ns)
        used_s = sum(sample.cpu_s for sample in self.samples)
        return used_s / ended * 1e6 if ended else float("nan")

    @property
    def completed_per_s(self) -> float:
        """Completions a second after the first fifth, in which caches and connections warm up."""
        done = sorted(r.done_ns for r in self.records if r.status == "completed" and r.done_ns)
        skipped = len(done) // 5
        return (len(done) - 1 - skipped) / ((done[-1] - done[skipped]) / 1e9)


class Peak:
    """Watches the memory of a process and its descendants until it ends.

    Proportional set sizes add up to what the machine really holds: pages that the processes share
    count once. Resident sizes are shown beside them.
    """

    def __init__(self, pid: int, every_s: float = 0.1) -> None:
        self.pss_bytes = 0
        self.rss_bytes = 0
        self._pid = pid
        self._ended = threading.Event()
        self._every_s = every_s
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(self._every_s):
            sizes = [_sizes(pid) for pid in _tree(self._pid)]
            self.rss_bytes = max(self.rss_bytes, sum(rss for rss, _ in sizes))
            self.pss_bytes = max(self.pss_bytes, sum(pss for _, pss in sizes))


def bench(*arguments: str, core: int | None = None, watch_memory: bool = False) -> BenchRun:
    """Run `headway bench` as anybody would, in processes of its own.

    Args:
        arguments: After `headway bench`, without `--run-dir`.
        core: Pin all of its processes to this core.
        watch_memory: Look at its memory ten times a second, which costs a little time.
    """
    with tempfile.TemporaryDirectory(prefix="headway-bench-") as scratch:
        path = Path(scratch) / "run"
        command = ["-c", "from headway.cli.main import main; raise SystemExit(main())"]
        pinned = ["taskset", "-c", str(core)] if core is not None else []
        began_ns = time.monotonic_ns()
        process = subprocess.Popen(
            [*pinned, sys.executable, *command, "bench", *arguments, "--run-dir", str(path)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        peak = Peak(process.pid, 0.1 if watch_memory else 3600.0)
        assert process.stderr is not None
        complaint = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        ended_ns = time.monotonic_ns()
        peak.stop()
        # An invalid measurement counts: a load beyond the client's means must be called that.
        if os.waitstatus_to_exitcode(status) not in (ExitCode.OK, ExitCode.INVALID_MEASUREMENT):
            raise SystemExit(f"headway bench failed:\n{complaint.decode()}")
        return BenchRun(path, began_ns, ended_ns, usage.ru_utime + usage.ru_stime, peak)


def flood(url: str, seconds: float, *arguments: str, tokens: int = REPLY_TOKENS) -> list[str]:
    """The arguments for as many requests as 64 streams of one worker can send."""
    return [
        url, "--streams", str(CONNECTIONS), "--max-seconds", f"{seconds:g}s", "--workers", "1",
        "--input", str(PROMPT_TOKENS), "--output", str(tokens), "--no-calibrate",
        "--quiet", *arguments,
    ]  # fmt: skip


def request_body(stream: bool, tokens: int = REPLY_TOKENS) -> bytes:
    """A body as Headway sends it, for the peers."""
    body = {
        "model": "headway-sim",
        "messages": [{"role": "user", "content": "time year people way day man thing woman life"}],
        "max_tokens": tokens,
    }
    return json.dumps(body | ({"stream": True} if stream else {})).encode()


def raw_request(stream: bool, tokens: int = REPLY_TOKENS) -> bytes:
    """Head and body, for the bare client."""
    body = request_body(stream, tokens)
    return (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    )


def wrk_rate(port: int, body_sent: bytes, seconds: float) -> float:
    """Requests per second of wrk with one thread, on the core of the caller."""
    wrk = shutil.which("wrk")
    if wrk is None:
        raise SystemExit("this comparison needs wrk (Debian: apt install wrk)")
    body = body_sent.decode().replace("\\", "\\\\").replace("'", "\\'")
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(
            f"wrk.method='POST'\nwrk.body='{body}'\n"
            "wrk.headers['Content-Type']='application/json'\n"
        )
        script.flush()
        printed = subprocess.run(
            [wrk, "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}s", "-s", script.name,
             f"http://127.0.0.1:{port}/v1/chat/completions"],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
    found = re.search(r"Requests/sec:\s+([\d.]+)", printed)
    if found is None:
        raise SystemExit(f"wrk printed no rate:\n{printed}")
    return float(found[1])


@contextlib.contextmanager
def pinned(core: int) -> Iterator[None]:
    """This process, and the children it starts, on one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


# --- tables ----------------------------------------------------------------------------------


class Samples:
    """Measurements by name, several of each."""

    def __init__(self) -> None:
        self._values: dict[str, list[float]] = {}

    def add(self, name: str, value: float) -> None:
        self._values.setdefault(name, []).append(value)

    def median(self, name: str) -> float:
        return statistics.median(self._values[name])

    def last(self, name: str) -> float:
        return self._values[name][-1]

    def spread(self, name: str, digits: int) -> str:
        values = self._values[name]
        return f"{min(values):,.{digits}f} to {max(values):,.{digits}f}"

    def __contains__(self, name: str) -> bool:
        return name in self._values


def title(text: str, command: str) -> None:
    """A section's heading, with what it was measured on."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("uvloop", "httptools"))
    print(f"\n### {text}\n")
    print(
        f"`{command}`, {time.strftime('%Y-%m-%d %H:%M')}, load average before "
        f"{os.getloadavg()[0]:.1f}, {len(os.sched_getaffinity(0))} cores, "
        f"Python {platform.python_version()}, {versions}\n",
        flush=True,
    )


def verdict(budget: str, text: str, met: bool) -> None:
    """One line that says whether a budget holds."""
    print(f"\n{budget}: {text}: {'met' if met else 'MISSED'}", flush=True)


def command_line() -> str:
    """How this script was started."""
    arguments = " ".join(sys.argv[1:])
    return f"python benchmarks/load/{Path(sys.argv[0]).name} {arguments}".rstrip()


# --- processes -------------------------------------------------------------------------------


def _tree(root: int) -> list[int]:
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


def _sizes(pid: int) -> tuple[int, int]:
    rss = pss = 0
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name == "Rss":
                rss = int(rest.split()[0]) * 1024
            elif name == "Pss":
                pss = int(rest.split()[0]) * 1024
    return rss, pss
