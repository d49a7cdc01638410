"""A worker put together: store, supervisor, dispatcher, and the duties beside it.

It can be started and stopped from Python, repeatedly in one process (J18): nothing here is global.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from contextlib import AsyncExitStack
from functools import cached_property

from headway.access.secret_keys import SecretKeys
from headway.core.clock import Clock
from headway.core.statedir import StateDir
from headway.core.states import Lane
from headway.dispatch.access_retention import AccessRetention
from headway.dispatch.briefing import Briefings
from headway.dispatch.capacity import Capacity, MemoryGauge, capacity
from headway.dispatch.clock_watch import ClockWatch
from headway.dispatch.dispatcher import Dispatcher, DispatchSettings
from headway.dispatch.doorbell import WORK
from headway.dispatch.host_statistics import HostStatistics
from headway.dispatch.lane_host import LaneHost
from headway.dispatch.lanes import BurstGate, LaneSize, LaneSlots, warm_processes
from headway.dispatch.loop import Loop, run_all
from headway.dispatch.loop_lag import LoopLag
from headway.dispatch.metrics import AttemptMetrics
from headway.dispatch.metrics_socket import MetricsSocket
from headway.dispatch.named_lease import NamedLease
from headway.dispatch.owner import owner_of_this_process
from headway.dispatch.preconditions import HealthClient, Surroundings
from headway.dispatch.rescuer import Rescuer
from headway.dispatch.retention import Retention
from headway.dispatch.system_jobs import SystemJob, SystemJobs
from headway.dispatch.unix_doorbell import UnixDoorbell
from headway.dispatch.waiting_room import WaitingRoom
from headway.dispatch.worker_settings import WorkerSettings
from headway.execution.settings import SupervisorSettings
from headway.execution.supervisor import Supervisor
from headway.jobs.environment import INHERITED, EnvironmentPolicy
from headway.jobs.registry import Registry, load_operations
from headway.store.sqlite.secrets import SqliteSecrets
from headway.store.sqlite.store import SqliteStore
from headway.store.sqlite.targets import SqliteTargets

_log = logging.getLogger(__name__)

_RESCUE_S = 2.0
_CLOCK_S = 5.0
_WAITING_ROOM_S = 2.0
_SYSTEM_JOBS_S = 60.0


class Worker:
    """Runs jobs of the process lanes until it is stopped.

    Args:
        settings: See `WorkerSettings`.
        clock: Source of all times.
        rng: Source of the jitter of retries.
    """

    def __init__(self, settings: WorkerSettings, clock: Clock, rng: random.Random) -> None:
        self.settings = settings
        self.owner = str(owner_of_this_process("worker"))
        self.metrics = AttemptMetrics("worker")
        self._clock = clock
        self._state_dir = StateDir(settings.state_dir)
        self._capacity = capacity()
        self.lane_sizes = settings.lane_sizes(self._capacity)
        self.store = SqliteStore(self._state_dir, clock, rng, self.metrics.store_call)
        self.doorbell = UnixDoorbell(self._state_dir)
        self._targets = SqliteTargets(self.store)
        briefings = Briefings(
            SqliteSecrets(self.store),
            SecretKeys.of_server(self._state_dir.root, os.environ),
            self._targets,
            settings.data_dir,
        )
        self._host = LaneHost(
            self.store, self.doorbell, self._state_dir, self.metrics, clock, rng, briefings
        )
        self._supervisor = Supervisor(self._supervisor_settings(), self._state_dir, clock)
        self._health = HealthClient()
        self._resources = AsyncExitStack()
        self._loops: list[Loop] = []
        self._dispatcher: Dispatcher | None = None

    async def open(self) -> None:
        """Connect, start the forkserver, make everything ready; `run` then works.

        Raises:
            ConfigError: the operations cannot be loaded, or the state directory cannot be used.
        """
        try:
            for resource in (self.store, self.doorbell, self._supervisor):
                self._resources.push_async_callback(resource.close)
                await resource.open()
            self._resources.push_async_callback(self._health.close)
            socket = MetricsSocket(
                self._state_dir, self.settings.name, self._exposition, self._clock
            )
            self._resources.push_async_callback(socket.close)
            await socket.open()
            self._assemble()
        except BaseException:
            await self.close()
            raise
        _log.info("lanes: %s", describe_lanes(self.lane_sizes, self._capacity))

    async def run(self) -> None:
        """Work until `stop` was called; raises what a loop could not survive."""
        assert self._dispatcher is not None, "open the worker before it runs"
        lag = asyncio.create_task(LoopLag(self._clock, self.metrics.loop_lag).run())
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._dispatcher.run())
                group.create_task(run_all(self._loops))
        finally:
            lag.cancel()

    async def drain(self, limit_s: float, grace_s: float) -> None:
        """Claim no more; finish what runs, or give it back. See `Dispatcher.drain`."""
        if self._dispatcher is not None:
            await self._dispatcher.drain(limit_s, grace_s)

    def stop(self) -> None:
        """Let `run` return. Calling it twice is fine."""
        if self._dispatcher is not None:
            self._dispatcher.stop()
        for loop in self._loops:
            loop.stop()

    async def close(self) -> None:
        """Leave no process, socket or thread behind. Closing twice is fine."""
        await self._resources.aclose()

    def _assemble(self) -> None:
        settings = self.settings
        services = self._host.services(
            self.owner,
            self._supervisor,
            settings.lease_s,
            settings.log_bytes,
            settings.result_bytes,
        )
        dispatch = DispatchSettings(owner=self.owner, lease_s=settings.lease_s)
        self._dispatcher = Dispatcher(services, self._lanes(), dispatch)
        self._loops = [
            self._rescuing(),
            self._awaiting(),
            self._system_jobs(),
            self._watching_the_clock(),
        ]

    def _lanes(self) -> dict[Lane, LaneSlots]:
        settings = self.settings
        reserve = settings.burst_reserve_bytes
        if reserve is None:
            reserve = self._capacity.memory_bytes // 10
        available = MemoryGauge().available_bytes
        gate = BurstGate(available, reserve, settings.burst_job_bytes, self._clock)
        return {lane: LaneSlots(size, gate.allowed) for lane, size in self.lane_sizes.items()}

    def _supervisor_settings(self) -> SupervisorSettings:
        return SupervisorSettings(
            modules=self.settings.operations,
            warm_processes=warm_processes(self.lane_sizes[Lane.SHORT]),
            environment=EnvironmentPolicy(inherited=(*INHERITED, *self.settings.env_inherited)),
        )

    def _rescuing(self) -> Loop:
        rescuer = Rescuer(self.store, self.doorbell, self.metrics, self._supervisor.kill_stale)
        return Loop("rescuing", rescuer.step, _RESCUE_S, self.doorbell.listen())

    def _watching_the_clock(self) -> Loop:
        watch = ClockWatch(self.store, self.doorbell, self._clock)
        return Loop("clock", watch.step, _CLOCK_S, self.doorbell.listen())

    def _awaiting(self) -> Loop:
        around = Surroundings(
            self.store, self._clock, self._health, self._registry, self._targets.target
        )
        room = WaitingRoom(around, self.doorbell, self._named_lease("preconditions"))
        self._resources.callback(room.close)
        bell = self.doorbell.listen(WORK)
        return Loop("preconditions", room.step, _WAITING_ROOM_S, bell)

    def _system_jobs(self) -> Loop:
        settings = self.settings.retention
        retention = Retention(self.store, self._state_dir, settings.rules())
        statistics = HostStatistics(self._state_dir, self.metrics)
        access = AccessRetention(self.store.accounts, self._clock)
        jobs = [
            SystemJob("retention", settings.cron, retention.run),
            SystemJob("access-retention", settings.cron, access.run),
            SystemJob("host-statistics", self.settings.statistics_cron, statistics.run),
        ]
        system_jobs = SystemJobs(self.store, jobs, self._named_lease, self._clock)
        return Loop("system-jobs", system_jobs.step, _SYSTEM_JOBS_S, self.doorbell.listen())

    def _named_lease(self, name: str) -> NamedLease:
        return NamedLease(self.store, name, self.owner, self.settings.lease_s)

    @cached_property
    def _loaded(self) -> Registry:
        return load_operations(*self.settings.operations)

    def _registry(self) -> Registry:
        return self._loaded

    def _exposition(self) -> bytes:
        self.metrics.processes(self._supervisor.statistics())
        if self._dispatcher is not None:
            self._dispatcher.report_lanes()
        return self.metrics.exposition()


def describe_lanes(sizes: dict[Lane, LaneSize], found: Capacity) -> str:
    """The lanes and what they were sized from, in one line for the start message (J1)."""
    lanes = ", ".join(
        f"{lane} {size.guaranteed} guaranteed + {size.burst} burst" for lane, size in sizes.items()
    )
    gib = found.memory_bytes / 1024**3
    return f"{lanes} (from {found.cpus:g} CPUs and {gib:.1f} GiB; {found.source})"
