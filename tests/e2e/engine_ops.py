"""Operations for tests of the whole job engine."""

from __future__ import annotations

import os
import time
from pathlib import Path

from headway.jobs import JobContext, operation

RETRIED = {"retryable": True, "max_attempts": 50, "quarantine_after": 50, "backoff_s": 0.05}


@operation(lane="long", **RETRIED)
def work(job: JobContext, seconds: float = 0.5) -> int:
    """Says who it is and works; later attempts are short."""
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


@operation(lane="short", **RETRIED)
def quick(job: JobContext, number: int = 0) -> int:
    return number


@operation(lane="inline")
def wait_for_file(job: JobContext, path: str) -> str:
    """Keeps a thread of the server until the file is there."""
    while not Path(path).exists():
        time.sleep(0.2)
    return "there"
