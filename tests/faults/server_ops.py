"""Operations for the fault suite: each leaves something that can be counted afterwards."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from headway.jobs import JobContext, Retry, operation

RETRIED = {"retryable": True, "max_attempts": 50, "quarantine_after": 50, "backoff_s": 0.05}


@operation(lane="long", **RETRIED)
def work(job: JobContext, seconds: float = 0.5) -> int:
    """Says who it is, leaves a file in its temp directory, and works; later attempts are short."""
    (job.temp_dir / "scratch").write_text("x")
    print(os.getpid(), flush=True)
    time.sleep(seconds if job.attempt == 1 else 0.05)
    return job.attempt


@operation(lane="long", **RETRIED)
def until_file(job: JobContext, path: str) -> int:
    """Says who it is, and runs until the file is there; later attempts do not wait for it."""
    print(os.getpid(), flush=True)
    while job.attempt == 1 and not Path(path).exists():
        time.sleep(0.02)
    return job.attempt


@operation(lane="long")
def once(job: JobContext, seconds: float = 0.5) -> int:
    """Like `work`, but may not run twice."""
    print(os.getpid(), flush=True)
    time.sleep(seconds)
    return job.attempt


@operation(lane="long", grace_s=0.2, **RETRIED)
def brood(job: JobContext, seconds: float = 300) -> int:
    """Has a grandchild in a session of its own; only the first attempt takes its time."""
    child = subprocess.Popen(["sleep", "300"], start_new_session=True)
    print(os.getpid(), child.pid, flush=True)
    if job.attempt == 1:
        time.sleep(seconds)
    return job.attempt


@operation(lane="short", **RETRIED)
def quick(job: JobContext, number: int = 0, text: str = "") -> int:
    return number


@operation(lane="short", **RETRIED)
def hold(job: JobContext, seconds: float = 0.5) -> int:
    """Keeps a warm process busy; later attempts are short."""
    print(os.getpid(), flush=True)
    time.sleep(seconds if job.attempt == 1 else 0.05)
    return job.attempt


@operation(lane="short", **RETRIED)
def twice(job: JobContext) -> int:
    """Asks to be run again, once."""
    if job.attempt == 1:
        raise Retry(after_s=0.2, reason="not yet")
    return job.attempt


@operation(lane="long", **RETRIED)
def backs_off(job: JobContext) -> int:
    """Asks to be run again after a pause that is long enough to do something to it."""
    if job.attempt == 1:
        raise Retry(after_s=4, reason="not yet")
    return job.attempt


@operation(lane="long", **RETRIED)
def late(job: JobContext, go: str = "") -> str:
    """The first attempt waits for a file, and then writes in every way that there is."""
    print(f"attempt {job.attempt} runs in {os.getpid()}", flush=True)
    if job.attempt == 1:
        while not Path(go).exists():
            time.sleep(0.02)
        job.progress(0.99, "stale")
        job.artifact("stale.txt", b"stale")
        print("stale", flush=True)
        Path(go).with_suffix(".written").touch()
    return f"attempt {job.attempt}"


@operation(lane="long", **RETRIED)
def chatter(job: JobContext, mib: int = 16) -> int:
    """Prints much."""
    line = "x" * 1023
    for _ in range(mib * 1024):
        print(line)
    return mib
