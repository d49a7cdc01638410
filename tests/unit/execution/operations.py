"""Operations that do what goes wrong in practice; loaded by the tests' supervisors."""

# ruff: noqa: ASYNC240 - short waits and file reads of a test harm nobody
from __future__ import annotations

import asyncio
import contextlib
import ctypes
import decimal
import gc
import locale
import logging
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from headway.jobs import JobCancelled, JobContext, Retry, attempt_cache, current_job, operation

STUBBORN = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
with open(sys.argv[1], "a") as file:
    file.write(f"{os.getpid()}\\n")
time.sleep(600)
"""

DOUBLE_FORK = """
import os, subprocess, sys
os.setsid()
if os.fork():
    os._exit(0)
os.setsid()
os.execv(sys.executable, [sys.executable, "-S", "-c", sys.argv[2], sys.argv[1]])
"""


def start_stubborn(pids: str) -> None:
    """A child, and a double-forked grandchild in a session of its own; both ignore SIGTERM.

    The child stands first in the file, because tests tell them apart by their order.
    """
    subprocess.Popen([sys.executable, "-S", "-c", STUBBORN, pids])
    _wait_for_lines(pids, 1)
    subprocess.run([sys.executable, "-S", "-c", DOUBLE_FORK, pids, STUBBORN], check=True)
    _wait_for_lines(pids, 2)


def _wait_for_lines(file: str, count: int) -> None:
    while not Path(file).exists() or len(Path(file).read_text().splitlines()) < count:
        time.sleep(0.01)


class Settings(BaseModel):
    level: int = 1


@operation(lane="short")
def echo(job: JobContext, value: Any = None) -> Any:
    return value


@operation(config=Settings)
def about(job: JobContext) -> dict[str, Any]:
    return {
        "id": job.id,
        "attempt": job.attempt,
        "pid": os.getpid(),
        "cwd": os.getcwd(),
        "tmp": tempfile.gettempdir(),
        "temp_dir": str(job.temp_dir),
        "env": dict(os.environ),
        "same_env": dict(job.env) == dict(os.environ),
        "level": job.config.level,
        "labels": dict(job.labels),
        "title": Path("/proc/self/cmdline").read_bytes().replace(b"\0", b" ").decode(),
        "session": os.getsid(0) == os.getpid(),
        "stdin": sys.stdin.read(),
        "isatty": sys.stdout.isatty(),
        "frozen": gc.get_freeze_count(),
        "current": current_job() is job,
    }


@operation
def environ_of(job: JobContext, pids: list[int]) -> list[str]:
    """What a job can read of other processes' environments."""
    found = []
    for pid in pids:
        try:
            found.append(Path(f"/proc/{pid}/environ").read_text())
        except OSError:
            found.append("")
    return found


@operation
def sleep(job: JobContext, seconds: float = 600) -> str:
    time.sleep(seconds)
    return "slept"


@operation
def cleans_up(job: JobContext, note: str) -> None:
    try:
        print("in it", flush=True)
        time.sleep(600)
    except JobCancelled:
        Path(note).write_text("cleaned")
        raise


@operation
def swallows_cancel(job: JobContext) -> str:
    with contextlib.suppress(JobCancelled):
        time.sleep(600)
    return "went on"


@operation
async def async_sleep(job: JobContext, note: str | None = None) -> str:
    print("sleeping")
    try:
        await asyncio.sleep(600)
    except JobCancelled:
        if note:
            Path(note).write_text("cleaned")
        raise
    return "slept"


@operation
async def async_group(job: JobContext, note: str) -> None:
    async def child() -> None:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            Path(note).write_text("child cancelled")
            raise

    print("sleeping")
    async with asyncio.TaskGroup() as group:
        group.create_task(child())


@operation
def obeys_with_tree(job: JobContext, pids: str) -> None:
    start_stubborn(pids)
    print("ready")
    time.sleep(600)


@operation
def ignores(job: JobContext, pids: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    start_stubborn(pids)
    print("ready")
    time.sleep(600)


@operation
def leaves_daemons(job: JobContext, pids: str) -> str:
    start_stubborn(pids)
    return "done"


@operation(lane="short")
def short_leaves_daemons(job: JobContext, pids: str) -> str:
    start_stubborn(pids)
    return "done"


@operation
def crash_with_daemons(job: JobContext, pids: str) -> None:
    start_stubborn(pids)
    os.kill(os.getpid(), signal.SIGKILL)


@operation
def fork_storm(job: JobContext) -> None:
    """A tree that keeps forking while it is killed."""
    script = (
        "import os, time\n"
        "for _ in range(60):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        if os.fork():\n"
        "            os._exit(0)\n"
        "        time.sleep(600)\n"
        "    time.sleep(0.005)\n"
        "time.sleep(600)\n"
    )
    subprocess.Popen([sys.executable, "-S", "-c", script])
    print("storm")
    time.sleep(600)


@operation
def exits(job: JobContext, code: int) -> None:
    os._exit(code)


@operation
def kills_itself(job: JobContext, number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(600)


@operation
def segfaults(job: JobContext) -> None:
    print("before")
    ctypes.string_at(0)


@operation
def sys_exit(job: JobContext, code: int) -> None:
    sys.exit(code)


@operation
def thread_exits(job: JobContext) -> str:
    thread = threading.Thread(target=lambda: sys.exit(3))
    thread.start()
    thread.join()
    return "alive"


@operation(retry_on=(OSError,))
def raises(job: JobContext, kind: str = "value") -> None:
    if kind == "chain":
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise RuntimeError("outer") from error
    if kind == "os":
        raise FileNotFoundError("no such thing")
    if kind == "memory":
        raise MemoryError
    if kind == "retry":
        raise Retry(after_s=1.5, reason="no GPU free")
    if kind == "hostile":

        class Hostile(Exception):
            def __str__(self) -> str:
                raise ValueError("no text")

        raise Hostile
    raise ValueError("wrong value \ud800")


@operation
def big_result(job: JobContext, size: int) -> str:
    return "x" * size


@operation
def unserializable(job: JobContext) -> Any:
    return {"lock": threading.Lock()}


@operation
def wrong_type(job: JobContext) -> int:
    return "seven"  # type: ignore[return-value]


@operation
def breaks_the_socket(job: JobContext) -> None:
    """Write rubbish into the control socket, as a job that writes to wrong descriptors would."""
    for name in os.listdir("/proc/self/fd"):
        if os.path.exists(f"/proc/self/fd/{name}") and int(name) > 2:
            try:
                if "socket" in os.readlink(f"/proc/self/fd/{name}"):
                    os.write(int(name), b"\xff" * 100)
            except OSError:
                pass
    time.sleep(600)


@operation
def output(job: JobContext) -> None:
    libc = ctypes.CDLL(None)
    for turn in range(3):
        print(f"python {turn}")
        sys.stderr.write(f"error {turn}\n")
        libc.puts(f"c {turn}".encode())
        libc.fflush(None)
        subprocess.run(["sh", "-c", f"echo child {turn}; (echo grandchild {turn})"], check=True)
        os.write(1, f"raw {turn}\n".encode())
    print("\x1b[31mred\x1b[0m")
    print("no newline", end="")
    libc.printf(b" and C without a flush")
    job.log.debug("for the debug log")


@operation
def late_child(job: JobContext) -> None:
    """Its child writes after it has returned."""
    subprocess.Popen(["sh", "-c", "sleep 0.2; echo late"])


@operation
def lines(job: JobContext, count: int, width: int = 20) -> None:
    text = "x" * (width - 8)
    write = sys.stdout.write
    for number in range(count):
        write(f"{number:07d}{text}\n")


@operation
def flood(job: JobContext, megabytes: int) -> None:
    block = b"y" * 1023 + b"\n"
    for _ in range(megabytes):
        os.write(1, block * 1024)


@operation
def closes_streams(job: JobContext) -> str:
    print("before")
    sys.stdout.close()
    os.close(1)
    os.close(2)
    return "still a result"


@operation
def progress(job: JobContext, count: int) -> None:
    for number in range(count):
        job.progress((number + 1) / count, f"step {number + 1}", number=number)


@operation
def artifacts(job: JobContext) -> None:
    (job.temp_dir / "data.csv").write_text("a,b\n")
    job.artifact("table/data.csv", job.temp_dir / "data.csv")
    job.artifact("note.txt", b"hello", "text/plain")


@operation
def bad_artifact(job: JobContext, name: str) -> None:
    job.artifact(name, b"x")


@operation
def eats_memory(job: JobContext, megabytes: int, seconds: float = 5) -> int:
    block = bytearray(megabytes * 1024 * 1024)
    block[::4096] = b"x" * len(block[::4096])
    time.sleep(seconds)
    return len(block)


@operation
def eats_memory_when_told(job: JobContext, megabytes: int) -> None:
    """Waits to be put into a control group, then takes memory piece by piece."""
    print("ready")
    time.sleep(0.5)
    kept.extend(b"x" * (1 << 20) + bytes([number % 256]) for number in range(megabytes))
    time.sleep(600)


@operation
def child_eats_memory(job: JobContext, megabytes: int, seconds: float) -> None:
    script = f"import time; b = b'x' * ({megabytes} << 20); time.sleep({seconds})"
    subprocess.run([sys.executable, "-S", "-c", script], check=True)


@operation
def burns_cpu(job: JobContext, seconds: float) -> None:
    script = "import time\nwhile time.process_time() < %f: pass" % (seconds / 2)
    subprocess.run([sys.executable, "-S", "-c", script], check=True)
    while time.process_time() < seconds / 2:
        pass


# --- the short lane -----------------------------------------------------------------------------

_variable: ContextVar[str] = ContextVar("variable", default="untouched")


@attempt_cache
def cached_pid_and_job(key: str) -> str:
    return f"{key} of {current_job().id}"


@operation(lane="short")
def pid(job: JobContext) -> int:
    return os.getpid()


@operation(lane="short")
def grows(job: JobContext, megabytes: int) -> int:
    kept.append(b"x" * (megabytes << 20))
    return os.getpid()


kept: list[bytes] = []


@operation(lane="short")
def cached(job: JobContext) -> list[str]:
    return [cached_pid_and_job("a"), cached_pid_and_job("a")]


class Change:
    """Everything that a job may do to its process and that must not reach the next one."""

    @staticmethod
    def environment() -> None:
        os.environ["APP_LEAK"] = "leaked"
        os.environ.pop("HOME", None)
        os.putenv("APP_SECRET_LEAK", "leaked")

    @staticmethod
    def directory() -> None:
        os.chdir("/usr")

    @staticmethod
    def temp() -> None:
        tempfile.tempdir = "/usr"

    @staticmethod
    def umask() -> None:
        os.umask(0o177)

    @staticmethod
    def context() -> None:
        _variable.set("leaked")
        decimal.getcontext().prec = 3

    @staticmethod
    def signals() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGALRM})
        signal.setitimer(signal.ITIMER_REAL, 3600)

    @staticmethod
    def streams() -> None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        sys.stderr = None  # type: ignore[assignment]
        sys.stdin.close()

    @staticmethod
    def interpreter() -> None:
        sys.path.insert(0, "/leaked")
        sys.argv.append("leaked")
        sys.setrecursionlimit(4000)
        gc.disable()
        gc.set_threshold(1, 1, 1)
        sys.excepthook = print
        sys.meta_path.append(object())  # type: ignore[arg-type]
        sys.setswitchinterval(1)

    @staticmethod
    def logs() -> None:
        logging.basicConfig(level=logging.DEBUG, stream=sys.stdout, force=True)
        logging.disable(logging.CRITICAL)
        warnings.simplefilter("error")

    @staticmethod
    def sockets() -> None:
        socket.setdefaulttimeout(1)

    @staticmethod
    def locales() -> None:
        locale.setlocale(locale.LC_ALL, "C")

    @staticmethod
    def loops() -> None:
        asyncio.set_event_loop_policy(asyncio.DefaultEventLoopPolicy())

    @staticmethod
    def descriptors() -> None:
        os.open("/", os.O_RDONLY)

    @staticmethod
    def thread() -> None:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()

    @staticmethod
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    @staticmethod
    def niceness() -> None:
        os.nice(1)


CHANGES = sorted(name for name in vars(Change) if not name.startswith("_"))


@operation(lane="short")
def change(job: JobContext, names: list[str]) -> int:
    for name in names:
        getattr(Change, name)()
    return os.getpid()


@operation(lane="short")
def observe(job: JobContext) -> dict[str, Any]:
    """Everything in this process that a job before could have changed."""
    ignore = {"HEADWAY_JOB_ID", "TMPDIR"}
    mask = os.umask(0o022)
    os.umask(mask)
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_char_p
    return {
        "env": {name: value for name, value in os.environ.items() if name not in ignore},
        "c_env": [
            str(libc.getenv(b"APP_LEAK")),
            str(libc.getenv(b"HOME")),
            str(libc.getenv(b"APP_SECRET_LEAK")),
        ],
        "cwd": os.getcwd() == str(job.temp_dir),
        "tmp": tempfile.gettempdir() == str(job.temp_dir),
        "umask": mask,
        "context": _variable.get(),
        "precision": decimal.getcontext().prec,
        "signals": {
            str(number): str(getattr(handler, "__name__", handler))
            for number in signal.valid_signals()
            if (handler := signal.getsignal(number)) is not None
        },
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "timer": signal.getitimer(signal.ITIMER_REAL)[0],
        "streams": [type(stream).__name__ for stream in (sys.stdin, sys.stdout, sys.stderr)],
        "closed": [stream.closed for stream in (sys.stdin, sys.stdout, sys.stderr)],
        "path": list(sys.path),
        "argv": list(sys.argv),
        "recursion": sys.getrecursionlimit(),
        "gc": [gc.isenabled(), list(gc.get_threshold())],
        "hook": sys.excepthook.__name__,
        "finders": len(sys.meta_path),
        "switch": sys.getswitchinterval(),
        "root": [logging.getLogger().level, len(logging.getLogger().handlers)],
        "disabled": logging.root.manager.disable,
        "filters": len(warnings.filters),
        "socket": socket.getdefaulttimeout(),
        "locale": locale.setlocale(locale.LC_ALL),
        "threads": threading.active_count(),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "files": list(resource.getrlimit(resource.RLIMIT_NOFILE)),
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "config": job.config,
    }
