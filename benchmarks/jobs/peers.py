"""The peers that Headway is measured beside: RQ and Celery, and with PEERS=1 two more.

They live in an environment of their own under the user's cache directory, made when it is missing.
Redis (Debian: redis-server) and PostgreSQL (Debian: postgresql) are started here, each on a port
and in a directory of its own. What is not to be had is said and left out.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PROGRAMS = HERE / "peer_programs"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headway-bench"
WORKERS = 2
PACKAGES = {
    "rq": ["rq"],
    "celery": ["celery[redis]"],
    "saq": ["saq[redis]"],
    "procrastinate": ["procrastinate", "psycopg[binary,pool]"],
}
START_S = 30.0


@dataclass(frozen=True)
class Peer:
    """A peer whose worker runs.

    Attributes:
        name: As its program is called.
        version: Of its package.
        service: What keeps its jobs, with how it was set.
        environment: Where its program finds that.
    """

    name: str
    version: str
    service: str
    environment: dict[str, str]

    def ask(self, *arguments: object) -> Any:
        """Run the peer's driver and read the JSON that it prints."""
        done = subprocess.run(
            [*_program(self.name), *map(str, arguments)],
            env=self.environment, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"{self.name} failed:\n{done.stderr[-3000:]}")
        return json.loads(done.stdout.splitlines()[-1])

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self.service})"


def wanted(names: Sequence[str]) -> list[str]:
    """The default peers, and with PEERS=1 also those that need more to be installed."""
    more = os.environ.get("PEERS") == "1"
    return [name for name in names if name in ("rq", "celery") or more]


@contextlib.contextmanager
def running(names: Sequence[str], fsync: str = "everysec") -> Iterator[dict[str, Peer]]:
    """Start the services and workers of the named peers.

    Args:
        names: Keys of PACKAGES.
        fsync: Redis's appendfsync. `everysec` is what is usual and may lose a second of jobs;
            `always` syncs each write, as Headway does.
    """
    with contextlib.ExitStack() as stack:
        started: dict[str, Peer] = {}
        redis_url: str | None = None
        for name in names:
            try:
                version = _install(name)
                if name == "procrastinate":
                    url, service = stack.enter_context(_postgresql())
                else:
                    if redis_url is None:
                        redis_url = stack.enter_context(_redis(fsync))
                    url, service = redis_url, f"Redis, appendfsync {fsync}"
                environment = os.environ | {
                    "SERVICE_URL": url,
                    "PYTHONPATH": str(PROGRAMS),
                    "PATH": f"{_bin()}:{os.environ['PATH']}",
                }
                stack.enter_context(_worker(name, environment))
            except Missing as missing:
                print(f"\n{name} is not measured: {missing}\n", flush=True)
                continue
            started[name] = Peer(name, version, service, environment)
        yield started


class Missing(Exception):
    """A peer is not to be had here."""


# --- its packages ----------------------------------------------------------------------------


def _bin() -> Path:
    return CACHE / "peers" / "bin"


def _program(name: str) -> list[str]:
    return [str(_bin() / "python"), str(PROGRAMS / f"peer_{name}.py")]


def _install(name: str) -> str:
    python = _bin() / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(_bin().parent)], check=True)
    version = _version(name)
    if version is None:
        print(f"installing {name} into {_bin().parent}", file=sys.stderr, flush=True)
        done = subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", *PACKAGES[name]],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        version = _version(name)
        if version is None:
            last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            raise Missing(f"pip could not install it ({last})")
    return version


def _version(name: str) -> str | None:
    code = f"from importlib.metadata import version; print(version({name!r}))"
    done = subprocess.run(
        [str(_bin() / "python"), "-c", code], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or None


# --- services --------------------------------------------------------------------------------


@contextlib.contextmanager
def _redis(fsync: str) -> Iterator[str]:
    program = shutil.which("redis-server")
    if program is None:
        raise Missing("there is no redis-server (Debian: apt install redis-server)")
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="headway-redis-") as directory:
        command = [
            program, "--port", str(port), "--bind", "127.0.0.1", "--dir", directory, "--save", "",
            "--appendonly", "yes", "--appendfsync", fsync,
        ]  # fmt: skip
        with _process(command, dict(os.environ)):
            _wait_for_port(port)
            yield f"redis://127.0.0.1:{port}"


@contextlib.contextmanager
def _postgresql() -> Iterator[tuple[str, str]]:
    """A PostgreSQL with its default settings (fsync on), under a user that may run it."""
    bins = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent.name)
    if not bins:
        raise Missing("there is no PostgreSQL server (Debian: apt install postgresql)")
    # It refuses to run as root.
    user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    as_user = user if os.geteuid() == 0 else []
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="headway-pg-") as directory:
        if as_user:
            shutil.chown(directory, "postgres", "postgres")
        data = f"{directory}/data"
        made = subprocess.run(
            [*as_user, str(bins[-1] / "initdb"), "-D", data, "-U", "bench", "-A", "trust"],
            capture_output=True, text=True, check=False, cwd="/",
        )  # fmt: skip
        if made.returncode:
            raise Missing(f"initdb failed ({made.stderr.strip().splitlines()[-1]})")
        command = [
            *as_user, str(bins[-1] / "postgres"), "-D", data, "-p", str(port), "-k", directory,
            "-c", "listen_addresses=127.0.0.1",
        ]  # fmt: skip
        with _process(command, dict(os.environ), stop=signal.SIGINT):
            _wait_for_port(port)
            major = bins[-1].parent.name
            url = f"postgresql://bench@127.0.0.1:{port}/postgres"
            yield url, f"PostgreSQL {major}, fsync on"


@contextlib.contextmanager
def _worker(name: str, environment: dict[str, str]) -> Iterator[None]:
    program = _program(name)
    subprocess.run([*program, "prepare"], env=environment, check=True, capture_output=True)
    command = {
        "rq": [
            str(_bin() / "rq"), "worker-pool", "--num-workers", str(WORKERS), "--quiet",
            "--logging-level", "ERROR", "--url", environment["SERVICE_URL"],
        ],
        "celery": [
            str(_bin() / "celery"), "--app", "peer_celery", "worker", "--pool", "prefork",
            "--concurrency", str(WORKERS), "--loglevel", "ERROR",
        ],
    }.get(name, [*program, "work"])  # fmt: skip
    with _process(command, environment):
        _wait_for_worker(name, program, environment)
        yield


def _wait_for_worker(name: str, program: list[str], environment: dict[str, str]) -> None:
    """Run three jobs; again when the first meets a worker that is not quite there."""
    until_s = time.monotonic() + START_S
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            done = subprocess.run(
                [*program, "latency", "3"], env=environment, capture_output=True, text=True,
                timeout=START_S, check=False,
            )  # fmt: skip
            if done.returncode == 0:
                return
            if time.monotonic() < until_s:
                time.sleep(1)
                continue
            raise Missing(f"its worker fails: {done.stderr.strip().splitlines()[-1]}")
        raise Missing(f"its worker did not run a job within {START_S:.0f} s")


@contextlib.contextmanager
def _process(
    command: list[str], environment: dict[str, str], stop: signal.Signals = signal.SIGTERM
) -> Iterator[None]:
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
        start_new_session=True,
    )  # fmt: skip
    try:
        yield
    finally:
        process.send_signal(stop)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for_port(port: int) -> None:
    until_s = time.monotonic() + START_S
    while time.monotonic() < until_s:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise Missing(f"nothing listens on port {port} after {START_S:.0f} s")
