"""Operations that write much."""

from __future__ import annotations

import os
import time

from headway.jobs import JobContext, operation


@operation(lane="long")
def writes(job: JobContext, mib: int) -> None:
    """Lines of 1 KiB as fast as a pipe takes them."""
    block = (("." * 1023 + "\n") * 64).encode()
    for _ in range(mib * 16):
        os.write(1, block)


@operation(lane="long")
def chatters(job: JobContext, lines_per_s: int, seconds: float) -> None:
    """Short lines through `print`, so many a second; as many as it can when that is too many."""
    began = time.monotonic()
    for slice_ in range(round(seconds * 100)):
        for number in range(lines_per_s // 100):
            print(number)
        time.sleep(max(0.0, began + (slice_ + 1) / 100 - time.monotonic()))


@operation(lane="long")
def murmurs(job: JobContext, seconds: float) -> None:
    """A line each 50 ms."""
    for number in range(round(seconds / 0.05)):
        print(number, "." * 60, flush=True)
        time.sleep(0.05)


@operation(lane="long")
def rests(job: JobContext) -> None:
    """Is there to be asked for."""
    time.sleep(3600)
