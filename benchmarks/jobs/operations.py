"""The operations that the benchmarks run; loaded by the measured server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from headway.jobs import JobContext, operation

_SLEEP = "import time; time.sleep(600)"
_IGNORE = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {_SLEEP}"


@operation(lane="short")
def nothing(job: JobContext, n: int = 0) -> int:
    """Gives back what it got, from a warm process."""
    return n


@operation
def fresh(job: JobContext, n: int = 0) -> int:
    """The same from a process of its own."""
    return n


@operation(grace_s=30.0)
def obeys(job: JobContext) -> None:
    """Waits with two children, one of them in a session of its own; all end on SIGTERM."""
    _print_tree(_SLEEP)
    time.sleep(600)


@operation(grace_s=0.5)
def ignores(job: JobContext) -> None:
    """The same, but nobody listens to SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _print_tree(_IGNORE)
    until_s = time.monotonic() + 600
    while time.monotonic() < until_s:
        time.sleep(600)


@operation(retryable=True, max_attempts=3)
def killed(job: JobContext) -> int:
    """Waits to be killed; the next attempt tells when it began."""
    began_ns = time.monotonic_ns()
    if job.attempt > 1:
        return began_ns
    print(os.getpid(), flush=True)
    time.sleep(600)
    return 0


@operation(retryable=True, max_attempts=3)
def noted(job: JobContext, file: str, first_waits: bool = False) -> int:
    """Leaves a line in a file; the first attempt of some is still running when all is killed."""
    with Path(file).open("a") as notes:
        notes.write(f"{job.id} {job.attempt}\n")
    if first_waits and job.attempt == 1:
        time.sleep(600)
    return job.attempt


@operation
def prints(job: JobContext, lines: int, gap_s: float) -> None:
    """Prints the time, again and again."""
    for _ in range(lines):
        print(time.monotonic_ns(), flush=True)
        time.sleep(gap_s)


def _print_tree(code: str) -> None:
    children = [
        subprocess.Popen([sys.executable, "-I", "-S", "-c", code], start_new_session=own_session)
        for own_session in (False, True)
    ]
    time.sleep(0.2)  # until the children are what they are to be
    print(os.getpid(), *(child.pid for child in children), flush=True)
