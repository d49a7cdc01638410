"""Operations whose logs are followed."""

from __future__ import annotations

import os
import time
from pathlib import Path

from headway.core.clock import monotonic_ns, ns_from_s
from headway.jobs import JobContext, operation


@operation(lane="long")
def lines(job: JobContext, count: int, width: int = 0, go: str = "") -> int:
    """Prints numbered lines as fast as a pipe takes them, once a file is there."""
    while go and not Path(go).exists():
        time.sleep(0.02)
    block = []
    for number in range(count):
        block.append(f"{number:09d}{'.' * width}\n")
        if len(block) == 1000:
            os.write(1, "".join(block).encode())
            block.clear()
    os.write(1, "".join(block).encode())
    return count


@operation(lane="long")
def prints(job: JobContext, seconds: float) -> int:
    """Prints short lines through `print`, as authors do, for a time; how many."""
    until_ns = monotonic_ns() + ns_from_s(seconds)
    number = 0
    while monotonic_ns() < until_ns:
        for _ in range(1000):
            print(number)
            number += 1
    return number


@operation(lane="short")
def noop(job: JobContext) -> None:
    """Nothing."""
