"""What attempts themselves write down of what they do, beside Headway and without its knowledge.

One file a job, one line a fact, each by a single append: the order of the lines is the order of
the facts, across processes. A side effect in the outside world would look like this.
"""

from __future__ import annotations

import hashlib
import json
import os
from enum import StrEnum
from pathlib import Path

import msgspec


class Fact(StrEnum):
    """What an attempt tells."""

    START = "start"
    BEAT = "beat"
    """It is still at work."""
    END = "end"
    """Its work is done; it is about to return, raise, or exit."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line.

    Attributes:
        attempt: The fencing token: a later attempt has a larger one.
        at_ns: The host's monotonic clock.
    """

    fact: Fact
    job: str
    attempt: int
    pid: int
    at_ns: int


class Journal:
    """Appends to a journal.

    Args:
        path: The file; made when it is missing.
        job: The job's id.
        attempt: Its attempt.
    """

    def __init__(self, path: Path, job: str, attempt: int) -> None:
        self._path = path
        self._job = job
        self._attempt = attempt

    def write(self, fact: Fact, at_ns: int) -> None:
        """Append one fact."""
        line = Line(fact=fact, job=self._job, attempt=self._attempt, pid=os.getpid(), at_ns=at_ns)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, msgspec.json.encode(line) + b"\n")
        finally:
            os.close(descriptor)


def read_journal(path: Path) -> tuple[Line, ...]:
    """The lines of a journal; none when there is no file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return ()
    return tuple(msgspec.json.decode(line, type=Line) for line in content.splitlines() if line)


def job_journal(directory: Path, label: str) -> Path:
    """Where the journal of an assignment is."""
    return directory / f"{label}.jsonl"


def digest(text: str) -> str:
    """What stands for a large text, so that thousands of them can be compared."""
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()} of {len(text)}"


def numbered_line(number: int, width: int = 0) -> str:
    """Line `number` of a job's output; told apart from every other and from a torn one."""
    # Characters of several bytes: a log that is cut in the middle of one must still be whole.
    return json.dumps({"line": number, "é": "·" * width}, ensure_ascii=False)
