"""Operations that are careless with the secrets that they were given."""

from __future__ import annotations

import base64
import os
import sys
import time

from headway.jobs import JobContext, Retry, operation


def blurt(job: JobContext, value: str) -> None:
    """Say it in every way that a job has."""
    print(f"the key is {value}", flush=True)
    print(f"as basic auth: {base64.b64encode(value.encode()).decode()}", file=sys.stderr)
    half = len(value) // 2
    for piece in (value[:half], value[half:]):  # two writes, two reads
        os.write(1, piece.encode())
        time.sleep(0.05)
    job.log.warning("debug: %s", value)
    job.progress(0.5, f"with {value}", loss=1.0)


@operation(lane="short", max_attempts=2, retryable=True, backoff_s=0.05)
def careless(job: JobContext, then: str = "return") -> dict[str, str]:
    value = os.environ["APP_KEY"]
    blurt(job, value)
    if job.attempt == 1:
        raise Retry(after_s=0.05, reason=f"refused with {value}")
    if then == "raise":
        raise ValueError(f"no access with {value}") from RuntimeError(value)
    return {"key": value, value: "reversed"}


@operation(lane="inline")
async def careless_inline(job: JobContext) -> str:
    print(f"inline with {job.env['APP_KEY']}")
    return job.env["APP_KEY"]


@operation(lane="long", grace_s=5)
def hold(job: JobContext) -> None:
    blurt(job, os.environ["APP_KEY"])
    print("holding", flush=True)
    time.sleep(60)


@operation(lane="short")
def peek(job: JobContext) -> list[str]:
    return sorted(name for name in os.environ if name.startswith("APP_"))
