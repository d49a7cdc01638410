"""Makes job processes: one forkserver at a time, a control group for each process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets

from headway.core.clock import Clock
from headway.core.errors import ConfigError
from headway.execution.attempt import KillMeans
from headway.execution.cgroup import Cgroup, CgroupBase, find_parent
from headway.execution.forkserver import (
    ForkRefused,
    Forkserver,
    ForkserverLost,
    ForkserverSetup,
)
from headway.execution.kill import CgroupKiller, Killer, ProcessGroupKiller, SubreaperKiller
from headway.execution.linux import is_subreaper, process_name, set_subreaper
from headway.execution.messages import Exited
from headway.execution.process import JobProcessHandle
from headway.execution.settings import SupervisorSettings
from headway.execution.stale import OWNER_VARIABLE, kill_stale
from headway.execution.surroundings import THREAD_LIMITS

log = logging.getLogger(__name__)

FORK_TRIES = 3
RESTART_WAITS_S = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
RESTART_PATIENCE_S = 60.0


class ProcessFactory:
    """Owns the forkserver, the control groups and the table of living job processes."""

    def __init__(self, settings: SupervisorSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._groups: CgroupBase | None = None
        self._others_groups: CgroupBase | None = None
        self._forkserver: Forkserver | None = None
        self._restart: asyncio.Task[None] | None = None
        self._processes: dict[int, JobProcessHandle] = {}
        self._was_subreaper = False
        self._closing = False
        self.killer: Killer = ProcessGroupKiller(clock)
        self.forks = 0
        self.restarts = 0

    async def open(self) -> None:
        """Find the means of killing, clean up behind dead predecessors, start the forkserver.

        Raises:
            ConfigError: the operations cannot be loaded, or the forced means is not to be had.
        """
        self._was_subreaper = is_subreaper()
        set_subreaper(True)
        self._open_groups()
        await self.kill_stale()
        try:
            self._forkserver = await self._new_forkserver()
            self.killer = self._choose_killer()
        except BaseException:
            await self.close()
            raise

    async def kill_stale(self) -> None:
        """Kill what supervisors that are dead by now have left on this host."""
        if self._others_groups is not None:
            self._others_groups.kill_stale()
        stale = await asyncio.to_thread(kill_stale)
        if stale:
            log.warning("killed %d processes that a dead supervisor had left", len(stale))

    def current(self) -> Forkserver:
        """The living forkserver.

        Raises:
            ForkserverLost: it died and the next is not ready yet.
        """
        if self._forkserver is None or not self._forkserver.alive:
            raise ForkserverLost("it is being restarted")
        return self._forkserver

    async def new(self) -> JobProcessHandle:
        """Fork a job process.

        Raises:
            ForkRefused: the host gives none, or no forkserver can be had.
        """
        for _ in range(FORK_TRIES):
            forkserver = await self._ready_forkserver()
            with contextlib.suppress(ForkserverLost):
                return await self._fork(forkserver)
        raise ForkRefused("the forkserver died again and again")

    def bury(self, process: JobProcessHandle) -> None:
        """Forget a dead process and remove its group."""
        self._processes.pop(process.pid, None)
        removed = process.cgroup is None or process.cgroup.remove()
        # At the close everything is killed and removed together.
        if not removed and process.cgroup is not None and not self._closing:
            log.warning("the cgroup %s is not empty after its job", process.cgroup.path)

    @property
    def jobs_reap(self) -> bool:
        """Whether a job process adopts its orphans, and so knows whether it left any."""
        return self.killer.means is not KillMeans.PROCESS_GROUP

    @property
    def processes(self) -> tuple[JobProcessHandle, ...]:
        """Every job process that has not been buried."""
        return tuple(self._processes.values())

    @property
    def forkserver_pid(self) -> int | None:
        return self._forkserver.pid if self._forkserver else None

    async def close(self) -> None:
        """Stop the forkserver and every job process with it."""
        self._closing = True
        if self._restart is not None:
            self._restart.cancel()
            await asyncio.gather(self._restart, return_exceptions=True)
        if self._forkserver is not None:
            await self._forkserver.close()
        for process in self.processes:
            process.close()
        self._processes.clear()
        self._close_groups()
        if not self._was_subreaper:
            set_subreaper(False)

    # --- control groups and means ---------------------------------------------------------------

    def _open_groups(self) -> None:
        parent, owner = find_parent(), process_name(os.getpid())
        if parent is None or owner is None:
            return
        # Two supervisors in one process, as in tests, must not share a directory.
        groups = CgroupBase(parent, f"{owner}.{secrets.token_hex(4)}")
        self._others_groups = groups
        if self._settings.kill_means in (None, KillMeans.CGROUP) and groups.create():
            self._groups = groups

    def _close_groups(self) -> None:
        if self._groups is not None:
            self._groups.remove()
            self._groups = None

    def _choose_killer(self) -> Killer:
        forced = self._settings.kill_means
        if self._groups is not None:
            return CgroupKiller(self._clock)
        if forced is KillMeans.CGROUP:
            raise ConfigError(
                "this host lets Headway make no cgroups (version 2, with cgroup.kill); "
                "do not force kill_means=cgroup"
            )
        if forced is KillMeans.PROCESS_GROUP:
            return ProcessGroupKiller(self._clock)
        return SubreaperKiller(self, self._clock)

    def _enter_group(self, forkserver: Forkserver) -> None:
        """Put the forkserver into a group: the proof that processes can be moved here."""
        if self._groups is None or forkserver.pid is None:
            return
        try:
            self._groups.new("forkserver").enter(forkserver.pid)
        except OSError as error:
            log.warning("cgroups cannot be used: %s", error)
            self._close_groups()

    # --- the forkserver -------------------------------------------------------------------------

    async def _new_forkserver(self) -> Forkserver:
        forkserver = Forkserver(self._setup(), self._on_exit, self._on_lost)
        await forkserver.open()
        self._enter_group(forkserver)
        if forkserver.threads > 1:
            log.warning(
                "importing the operations started %d threads; forking with threads can deadlock: "
                "start them in the operation instead",
                forkserver.threads - 1,
            )
        return forkserver

    def _setup(self) -> ForkserverSetup:
        environment = {
            **self._settings.environment.base(os.environ),
            **dict.fromkeys(THREAD_LIMITS, str(self._settings.threads_per_job)),
            # setproctitle would overwrite the environment that /proc shows.
            "SPT_NOENV": "1",
            OWNER_VARIABLE: process_name(os.getpid()) or "",
        }
        return ForkserverSetup(
            modules=self._settings.modules,
            environment=environment,
            cgroup=str(self._groups.path) if self._groups else None,
            start_timeout_s=self._settings.start_timeout_s,
        )

    async def _ready_forkserver(self) -> Forkserver:
        if self._restart is not None:
            try:
                async with asyncio.timeout(RESTART_PATIENCE_S):
                    await asyncio.shield(self._restart)
            except TimeoutError:
                raise ForkRefused("the forkserver cannot be restarted") from None
        if self._closing or self._forkserver is None:
            raise ForkRefused("the supervisor is closing")
        return self._forkserver

    def _on_lost(self) -> None:
        for process in self.processes:
            process.adopt()
        if not self._closing and self._restart is None:
            self._restart = asyncio.get_running_loop().create_task(self._restart_forkserver())

    async def _restart_forkserver(self) -> None:
        log.warning("the forkserver died; starting another")
        if self._forkserver is not None:
            await self._forkserver.close()
        attempt = 0
        while not self._closing:
            await asyncio.sleep(RESTART_WAITS_S[min(attempt, len(RESTART_WAITS_S) - 1)])
            attempt += 1
            try:
                self._forkserver = await self._new_forkserver()
            except ConfigError as error:
                log.error("the forkserver cannot be restarted: %s", error)
            else:
                self.restarts += 1
                break
        self._restart = None

    def _on_exit(self, message: Exited) -> None:
        process = self._processes.get(message.pid)
        if process is not None:
            process.on_exited(message)

    # --- forking --------------------------------------------------------------------------------

    async def _fork(self, forkserver: Forkserver) -> JobProcessHandle:
        group = self._new_group()
        groups = (group.procs_file,) if group else ()
        try:
            new = await forkserver.fork(groups, self.jobs_reap)
        except BaseException:
            if group is not None:
                group.remove()
            raise
        process = JobProcessHandle(new, group)
        self._processes[new.pid] = process
        self.forks += 1
        return process

    def _new_group(self) -> Cgroup | None:
        if self._groups is None:
            return None
        try:
            return self._groups.new()
        except OSError as error:
            raise ForkRefused(f"no cgroup for the job: {error}") from error
