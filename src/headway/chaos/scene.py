"""The processes of a server under fire: finds them, whatever they do to hide."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from headway.chaos.plan import Victim

MARK = "CHAOS_SCRATCH"
"""An environment variable that every process of the scene inherits."""

_TITLES = (
    (re.compile(r"^headway: (long|short) job "), Victim.JOB),
    (re.compile(r"^headway: idle "), Victim.IDLE),
    (re.compile(r"^headway: forkserver"), Victim.FORKSERVER),
    (re.compile(r"^headway: server|headway\.cli\.main serve "), Victim.API),
    (re.compile(r"^headway: worker|headway\.dispatch\.worker_main"), Victim.WORKER),
    (re.compile(r"headway\.execution\.forkserver_main"), Victim.FORKSERVER),
    (re.compile(r"^headway: keeper|headway\.cli\.main worker "), Victim.KEEPER),
)


@dataclass(frozen=True)
class Seen:
    """A process of the scene; signals sent through it never hit another one."""

    process: psutil.Process
    role: Victim
    title: str

    @property
    def pid(self) -> int:
        return int(self.process.pid)

    def __str__(self) -> str:
        return f"process {self.pid} ({self.role}: {self.title[:80]})"


class Scene:
    """Everything that belongs to one scratch directory.

    Args:
        directory: Its path is the mark.
    """

    def __init__(self, directory: Path) -> None:
        self._mark = str(directory)

    @property
    def environment(self) -> dict[str, str]:
        """What the first processes are started with, besides their usual environment."""
        # Without the second, a process that sets its title overwrites the environment it shows.
        return {MARK: self._mark, "SPT_NOENV": "1"}

    def processes(self) -> list[Seen]:
        """Who lives now, oldest first."""
        return sorted(self._marked(), key=lambda seen: (seen.process.create_time(), seen.pid))

    def _marked(self) -> Iterator[Seen]:
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.environ().get(MARK) != self._mark:
                    continue
                if process.status() == psutil.STATUS_ZOMBIE:
                    continue
                process.create_time()  # remembered: a pid that is used again is then noticed
                title = " ".join(process.cmdline()).rstrip()
                yield Seen(process, _role(title), title)


def _role(title: str) -> Victim:
    return next((role for pattern, role in _TITLES if pattern.search(title)), Victim.CHILD)
