"""Four operations, one for each way of working. Start a server with them:

headway serve --operations examples/ops.py
"""

from __future__ import annotations

import asyncio
import subprocess
import sys

from pydantic import BaseModel, ConfigDict, Field

from headway.jobs import JobCancelled, JobContext, Retry, operation


class Primes(BaseModel):
    """Count the primes below a limit."""

    model_config = ConfigDict(extra="forbid")  # Else a misspelt field would be left out, unsaid.

    below: int = Field(default=200_000, ge=2, le=50_000_000)


class PrimesFound(BaseModel):
    """What was counted."""

    count: int
    largest: int


@operation(lane="long", retryable=True, timeout_s=3600, max_attempts=3)
def primes(job: JobContext, request: Primes) -> PrimesFound:
    """Count primes: keeps one CPU busy, and tells how far it is."""
    sieve = bytearray([1]) * request.below
    sieve[0:2] = b"\0\0"
    root = int(request.below**0.5) + 1
    for number in range(2, root):
        if sieve[number]:
            sieve[number * number :: number] = bytes(
                len(range(number * number, request.below, number))
            )
        job.progress(number / root, f"sieving with {number}")
    count, largest = sum(sieve), sieve.rindex(1)
    print(f"{count} primes below {request.below}, the largest is {largest}")
    job.artifact("primes.txt", "\n".join(str(n) for n in range(request.below) if sieve[n]).encode())
    return PrimesFound(count=count, largest=largest)


class Steps(BaseModel):
    """Run a few commands."""

    model_config = ConfigDict(extra="forbid")

    steps: int = Field(default=3, ge=1, le=100)
    seconds_each: float = Field(default=0.2, ge=0, le=60)


@operation(lane="long", grace_s=5)
def pipeline(job: JobContext, request: Steps) -> list[int]:
    """Start one subprocess after another; their output is in the job's log."""
    codes = []
    try:
        for step in range(1, request.steps + 1):
            job.progress((step - 1) / request.steps, f"step {step} of {request.steps}")
            script = f"import time; print('step {step}'); time.sleep({request.seconds_each})"
            codes.append(subprocess.run([sys.executable, "-c", script], check=False).returncode)
    except JobCancelled:
        print(f"stopped after {len(codes)} steps")
        raise
    return codes


@operation(lane="inline", cancel_on_disconnect=True)
async def greet(job: JobContext, name: str, delay_s: float = 0.0) -> str:
    """Answer from the server's event loop, after a pause."""
    await asyncio.sleep(delay_s)
    return f"Hello, {name}, from attempt {job.attempt}"


@operation(lane="short", retryable=True, max_attempts=5, backoff_s=0.1)
def flaky(job: JobContext, succeed_at: int = 3) -> str:
    """Ask to be run again until the attempt with the given number."""
    if job.attempt < succeed_at:
        raise Retry(after_s=0.1, reason=f"attempt {job.attempt} of {succeed_at}")
    print(f"attempt {job.attempt} is good")
    return f"succeeded at attempt {job.attempt}"
