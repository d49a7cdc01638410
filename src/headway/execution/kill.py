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
    """One write to `cgroup.kill`; the kernel does the rest, however the tree forks meanwhile.

    The main process gets a signal of its own and is seen dead first: it enters its group by itself
    soon after the fork, and one that had not yet would run on and fork into a group already killed.
    """

    means = KillMeans.CGROUP

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def kill(self, process: JobProcessHandle) -> tuple[tuple[int, ...], tuple[int, ...]]:
        assert process.cgroup is not None
        members = tuple(pid for pid in process.cgroup.members() if _alive(pid))
        main = (process.pid,) if process.send_signal(signal.SIGKILL) else ()
        process.cgroup.kill_nowait()
        undead = () if await wait_dead(process) else (process.pid,)
        left = await process.cgroup.kill(self._clock)
        return _distinct(main, members), _distinct(undead, left)


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
        main = (process.pid,) if process.send_signal(signal.SIGKILL) else ()
        undead = () if await wait_dead(process) else (process.pid,)
        swept = await self._sweep(known)
        below = tuple(facts.pid for facts in known)
        return _distinct(main, below, swept.killed), _distinct(undead, swept.survivors)

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
        # Right after the fork it leads no group yet, and would make one after this had looked.
        main = (process.pid,) if process.send_signal(signal.SIGKILL) else ()
        killed: list[int] = []
        while members := _group(process.pid):
            killed += [facts.pid for facts in members if kill_exactly(facts)]
            if self._clock.monotonic_ns() > deadline_ns:
                break
            await asyncio.sleep(ROUND_S)
        undead = () if await wait_dead(process) else (process.pid,)
        left = tuple(facts.pid for facts in members)
        return _distinct(main, tuple(killed)), _distinct(undead, left)


def _distinct(*groups: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(pid for group in groups for pid in group))


def _group(group: int) -> list[ProcessFacts]:
    return [facts for facts in read_processes().values() if facts.group == group and facts.alive]


def _alive(pid: int) -> bool:
    facts = read_process(pid)
    return facts is not None and facts.alive


def _same_and_alive(facts: ProcessFacts) -> bool:
    now = read_process(facts.pid)
    return now is not None and now.start_ticks == facts.start_ticks and now.alive
