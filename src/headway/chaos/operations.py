"""The operations whose jobs are submitted while the server is hurt.

Each leaves a trace in a journal, and most leave something that can be counted or compared.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headway.chaos.journal import Fact, Journal, numbered_line
from headway.core.clock import monotonic_ns, ns_from_s
from headway.jobs import JobContext, Retry, operation

_BEAT_S = 0.05
_KILLED_OFTEN: dict[str, Any] = {
    "retryable": True,
    "max_attempts": 10_000,
    "quarantine_after": 10_000,
    "backoff_s": 0.05,
    "backoff_max_s": 0.5,
}
"""The verifier kills on purpose and again and again; that is not the job's fault."""
CRASHES = 3


class Works:
    """Keeps the journal of one attempt while it works."""

    def __init__(self, job: JobContext, journal: str) -> None:
        self._journal = Journal(Path(journal), job.id, job.attempt)

    def __enter__(self) -> Works:
        self._write(Fact.START)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # What is told to stop has not done its work.
        if kind is None or issubclass(kind, Exception):
            self._write(Fact.END)

    def beat(self) -> None:
        self._write(Fact.BEAT)

    def for_s(self, seconds: float) -> None:
        """Work for a time, with a beat now and then."""
        until_ns = monotonic_ns() + ns_from_s(seconds)
        while monotonic_ns() < until_ns:
            time.sleep(min(_BEAT_S, seconds))
            self.beat()

    def _write(self, fact: Fact) -> None:
        self._journal.write(fact, monotonic_ns())


@operation(name="chaos.quick", lane="short", **_KILLED_OFTEN)
def quick(job: JobContext, journal: str, number: int) -> int:
    """Returns at once."""
    with Works(job, journal):
        return number


@operation(name="chaos.inline", lane="inline", **_KILLED_OFTEN)
def inline(job: JobContext, journal: str, number: int) -> int:
    """Runs in the API process."""
    with Works(job, journal) as works:
        works.for_s(0.1)
        return number


@operation(name="chaos.steady", lane="long", grace_s=1.0, **_KILLED_OFTEN)
def steady(job: JobContext, journal: str, lines: int, pause_s: float) -> int:
    """Prints numbered lines at its ease."""
    with Works(job, journal) as works:
        for number in range(lines):
            _say(number)
            job.progress((number + 1) / lines)
            works.beat()
            time.sleep(pause_s)
        return lines


@operation(name="chaos.flood", lane="long", grace_s=1.0, **_KILLED_OFTEN)
def flood(job: JobContext, journal: str, lines: int, width: int) -> int:
    """Prints numbered lines as fast as it can."""
    with Works(job, journal) as works:
        for number in range(lines):
            print(numbered_line(number, width))  # noqa: T201 - its output is what it is about
            if number % 1000 == 0:
                works.beat()
        return lines


@operation(name="chaos.brood", lane="long", grace_s=1.0, **_KILLED_OFTEN)
def brood(job: JobContext, journal: str, seconds: float) -> int:
    """Has a child in a session of its own and a grandchild that was forked twice, and leaves both
    behind.
    """
    with Works(job, journal) as works:
        subprocess.Popen(["sleep", "600"], start_new_session=True)
        subprocess.run(["sh", "-c", "(setsid sleep 600 &)"], check=True)
        works.for_s(seconds)
        return 2


@operation(name="chaos.flaky", lane="short", **_KILLED_OFTEN)
def flaky(job: JobContext, journal: str, retries: int) -> int:
    """Asks to be run again, some times."""
    with Works(job, journal):
        _say(0)
        if job.attempt <= retries:
            raise Retry(after_s=0.3, reason=f"attempt {job.attempt} of {retries} that fail")
        return retries


@operation(name="chaos.failing", lane="short", **_KILLED_OFTEN)
def failing(job: JobContext, journal: str) -> None:
    """Always raises."""
    with Works(job, journal):
        raise ValueError("as it was asked to")


@operation(
    name="chaos.crashing", lane="long", retryable=True, max_attempts=10_000, backoff_s=0.05,
    quarantine_after=CRASHES,
)  # fmt: skip
def crashing(job: JobContext, journal: str) -> None:
    """Always takes its process down."""
    with Works(job, journal) as works:
        works.beat()
        os._exit(3)


@operation(name="chaos.once", lane="long", grace_s=1.0)
def once(job: JobContext, journal: str, seconds: float) -> int:
    """May not run twice: it is lost with its process, and says so."""
    with Works(job, journal) as works:
        works.for_s(seconds)
        return 1


@operation(name="chaos.large", lane="short", **_KILLED_OFTEN)
def large(job: JobContext, journal: str, kib: int) -> str:
    """Returns much."""
    with Works(job, journal):
        return large_text(kib)


@operation(name="chaos.keeps", lane="long", grace_s=1.0, **_KILLED_OFTEN)
def keeps(job: JobContext, journal: str, kib: int) -> int:
    """Leaves an artifact."""
    with Works(job, journal) as works:
        job.artifact(ARTIFACT, large_text(kib).encode())
        works.for_s(0.1)
        return kib


@operation(name="chaos.sleeper", lane="long", grace_s=0.5, **_KILLED_OFTEN)
def sleeper(job: JobContext, journal: str) -> None:
    """Works until it is cancelled."""
    with Works(job, journal) as works:
        works.for_s(3600)


@operation(name="chaos.exclusive", lane="short", **_KILLED_OFTEN)
def exclusive(job: JobContext, journal: str, shared: str, seconds: float) -> int:
    """Does what only one job may do at a time: `shared` is the journal of all of them."""
    with Works(job, journal), Works(job, shared) as works:
        works.for_s(seconds)
        return 1


def _say(number: int) -> None:
    print(numbered_line(number), flush=True)  # noqa: T201 - a job's output is what it is about


ARTIFACT = "text.txt"


def large_text(kib: int) -> str:
    """A text of `kib` KiB in which a missing piece shows."""
    return "".join(_pieces(kib))


def _pieces(kib: int) -> Iterator[str]:
    for number in range(kib):
        yield f"{number:08d}".ljust(1024, ".")
