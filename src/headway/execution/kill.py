"""Killing whole process trees, by the best means that the host offers (J6, N10, trap 21)."""

from __future__ import annotations

import asyncio
import signal
from typing import Protocol

from headway.core.clock import Clock, ns_from_s
from headway.execution.attempt import KillMeans
from headway.execution.forkserver import Forkserver, ForkserverLost
from headway.execution.linux import (
    ProcessFacts,
    descendants,
    kill_exactly,
    read_process,
    read_processes,
)
from headway.execution.messages import Swept
from headway.execution.process import JobProcessHandle

KILL_LIMIT_S = 5.0
ROUND_S = 0.001


class Killer(Protocol):
    """One means of killing a job's tree."""

    means: KillMeans

    async def kill(self, process: JobProcessHandle) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """SIGKILL the process and all that descends from it, and see them dead.

        Returns:
            The pids that were killed, and those that could not be shown dead.
        """
        ...


async def wait_dead(process: JobProcessHandle) -> bool:
    """Wait for the end of the main process; False when it takes over KILL_LIMIT_S."""
    try:
        async with asyncio.timeout(KILL_LIMIT_S):
            await asyncio.shield(process.exit)
    except TimeoutError:
        return False
    return True


class CgroupKiller:
    """One write to `cgroup.kill`; the kernel does the rest, however the tree forks meanwhile."""

    means = KillMeans.CGROUP

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def kill(self, process: JobProcessHandle) -> tuple[tuple[int, ...], tuple[int, ...]]:
        assert process.cgroup is not None
        members = tuple(pid for pid in process.cgroup.members() if _alive(pid))
        process.cgroup.kill_nowait()
        empty = await process.cgroup.wait_empty(self._clock)
        await wait_dead(process)
        return members, () if empty else process.cgroup.members()


class SubreaperKiller:
    """Kill the main process, then every orphan that falls to the forkserver, until none falls.

    A job process is the reaper of its descendants, and the forkserver is the reaper of job
    processes, so whatever a job left, at any depth and in any session, becomes a child of the
    forkserver when what is above it dies.
    """

    means = KillMeans.SUBREAPER

    def __init__(self, forkserver: ForkserverSource, clock: Clock) -> None:
        self._forkserver = forkserver
        self._clock = clock

    async def kill(self, process: JobProcessHandle) -> tuple[tuple[int, ...], tuple[int, ...]]:
        known = descendants(process.pid, read_processes()) if not process.exit.done() else []
        killed = (process.pid,) if process.send_signal(signal.SIGKILL) else ()
        await wait_dead(process)
        swept = await self._sweep(known)
        below = tuple(dict.fromkeys((*(facts.pid for facts in known), *swept.killed)))
        return killed + below, swept.survivors

    async def _sweep(self, known: list[ProcessFacts]) -> Swept:
        try:
            return await self._forkserver.current().sweep()
        except ForkserverLost:
            return await self._sweep_known(known)

    async def _sweep_known(self, known: list[ProcessFacts]) -> Swept:
        """Without a forkserver: what was seen below the job, and what it forks meanwhile."""
        deadline_ns = self._clock.monotonic_ns() + ns_from_s(KILL_LIMIT_S)
        killed: list[int] = []
        while known and self._clock.monotonic_ns() < deadline_ns:
            processes = read_processes()
            below = [facts for one in known for facts in descendants(one.pid, processes)]
            killed += [facts.pid for facts in known if kill_exactly(facts)]
            await asyncio.sleep(ROUND_S)
            known = [facts for facts in (*known, *below) if _same_and_alive(facts)]
        return Swept(0, tuple(killed), tuple(facts.pid for facts in known))


class ForkserverSource(Protocol):
    """Whoever knows the forkserver of the moment."""

    def current(self) -> Forkserver:
        """The living forkserver.

        Raises:
            ForkserverLost: there is none now.
        """
        ...


class ProcessGroupKiller:
    """SIGKILL to the members of the job's process group, until there is none.

    The last resort, where nothing better exists: a descendant that made a session or group of its
    own is not found.
    """

    means = KillMeans.PROCESS_GROUP

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def kill(self, process: JobProcessHandle) -> tuple[tuple[int, ...], tuple[int, ...]]:
        deadline_ns = self._clock.monotonic_ns() + ns_from_s(KILL_LIMIT_S)
        killed: list[int] = []
        while members := _group(process.pid):
            killed += [facts.pid for facts in members if kill_exactly(facts)]
            if self._clock.monotonic_ns() > deadline_ns:
                break
            await asyncio.sleep(ROUND_S)
        await wait_dead(process)
        return tuple(dict.fromkeys(killed)), tuple(facts.pid for facts in members)


def _group(group: int) -> list[ProcessFacts]:
    return [facts for facts in read_processes().values() if facts.group == group and facts.alive]


def _alive(pid: int) -> bool:
    facts = read_process(pid)
    return facts is not None and facts.alive


def _same_and_alive(facts: ProcessFacts) -> bool:
    now = read_process(facts.pid)
    return now is not None and now.start_ticks == facts.start_ticks and now.alive
