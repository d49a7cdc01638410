"""Operations that take more memory than they may."""

from __future__ import annotations

import resource
import time

from headway.jobs import JobContext, operation

MIB = 1 << 20


@operation(memory_limit_bytes=150 * MIB, grace_s=5.0)
def over_its_limit(job: JobContext) -> int:
    """Takes more than the limit of its operation."""
    held = [bytearray(b"x" * MIB) for _ in range(400)]
    time.sleep(60)
    return len(held)


@operation
def over_the_systems_limit(job: JobContext) -> int:
    """Asks for more address space than the system gives it."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, hard))
    return len(bytearray(2 << 30))
