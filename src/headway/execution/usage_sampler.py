"""Looks at the memory of running trees from time to time (J26)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from headway.execution.linux import (
    ProcessFacts,
    descendants,
    oom_kills,
    read_process,
    read_processes,
)
from headway.execution.process import JobProcessHandle

INTERVAL_S = 0.25
OOM_HISTORY = 4
"""Looks that are remembered: a death is told well within a second of the kill."""


@dataclass(slots=True)
class Watched:
    """A running tree.

    Attributes:
        limit_bytes: Above it `on_over_limit` is called, once.
        peak_rss_bytes: Largest sum of resident memory seen. Pages that processes share count once
            for each, so it is an upper bound.
    """

    process: JobProcessHandle
    limit_bytes: int | None
    on_over_limit: Callable[[int], None]
    peak_rss_bytes: int = 0
    over: bool = False


class UsageSampler:
    """One timer for all running attempts; none while nothing runs."""

    def __init__(self) -> None:
        self._watched: list[Watched] = []
        self._oom_kills: deque[int] = deque(maxlen=OOM_HISTORY)
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, watched: Watched) -> None:
        """Look at a tree until `forget`."""
        self._watched.append(watched)
        if self._timer is None:
            self._schedule()

    def recent_oom_kills(self) -> int:
        """Processes that the kernel killed for want of memory on this host in the last second."""
        return oom_kills() - self._oom_kills[0] if self._oom_kills else 0

    def forget(self, watched: Watched) -> None:
        """Stop looking at a tree."""
        self._watched.remove(watched)

    def sample(self) -> None:
        """Look at every tree now."""
        # All of /proc is read once, and only when a tree has no cgroup that lists its members.
        need_all = any(watched.process.cgroup is None for watched in self._watched)
        processes = read_processes() if need_all else {}
        for watched in self._watched:
            self._look(watched, processes)

    def _look(self, watched: Watched, processes: dict[int, ProcessFacts]) -> None:
        if watched.process.cgroup is not None:
            found = (read_process(pid) for pid in watched.process.cgroup.members())
            rss_bytes = sum(facts.rss_bytes for facts in found if facts is not None)
        else:
            own = processes.get(watched.process.pid)
            below = descendants(watched.process.pid, processes)
            rss_bytes = sum(facts.rss_bytes for facts in ([own] if own else []) + below)
        watched.peak_rss_bytes = max(watched.peak_rss_bytes, rss_bytes)
        if watched.limit_bytes is not None and rss_bytes > watched.limit_bytes and not watched.over:
            watched.over = True
            watched.on_over_limit(rss_bytes)

    def _schedule(self) -> None:
        self._oom_kills.append(oom_kills())
        self._timer = asyncio.get_running_loop().call_later(INTERVAL_S, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._watched:
            self.sample()
            self._schedule()
        else:
            self._oom_kills.clear()

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
