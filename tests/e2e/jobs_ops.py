"""Operations for the end-to-end tests of the job server."""

from __future__ import annotations

import os
import signal
import time

from pydantic import BaseModel

from headway.jobs import JobContext, Retry, operation


class Speech(BaseModel):
    lines: int = 5
    pause_s: float = 0.0


class Said(BaseModel):
    lines: int


@operation(lane="short")
def talk(job: JobContext, request: Speech) -> Said:
    """Print numbered lines, with progress."""
    for number in range(request.lines):
        print(f"line {number}", flush=True)
        job.progress((number + 1) / request.lines, f"said {number}")
        time.sleep(request.pause_s)
    return Said(lines=request.lines)


@operation(lane="short")
def echo(job: JobContext, text: str = "") -> str:
    return text


@operation(lane="long", grace_s=5.0)
def sleep(job: JobContext, seconds: float = 60.0) -> int:
    """Sleep; a place to be cancelled in."""
    print(f"process {os.getpid()}", flush=True)
    time.sleep(seconds)
    return os.getpid()


@operation(lane="long", grace_s=5.0)
def train(job: JobContext, seconds: float = 60.0) -> None:
    """Report a number, then take its time."""
    job.progress(0.5, "epoch 1", loss=0.25)
    time.sleep(seconds)


@operation(lane="short")
def fail(job: JobContext, message: str = "no luck") -> None:
    raise ValueError(message)


@operation(lane="long", retryable=True, max_attempts=3)
def crash_once(job: JobContext) -> int:
    print(f"attempt {job.attempt}", flush=True)
    if job.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return job.attempt


@operation(lane="short", max_attempts=3)
def again(job: JobContext) -> int:
    print(f"attempt {job.attempt}", flush=True)
    if job.attempt < 2:
        raise Retry(after_s=0.05, reason="not yet")
    job.artifact("report.txt", b"all good\n", media_type="text/plain")
    return job.attempt


@operation(lane="inline")
async def ping(job: JobContext) -> str:
    return "pong"
