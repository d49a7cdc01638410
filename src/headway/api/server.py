"""The life of a server process: start its parts in order, serve, and stop them in reverse."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import math
import os
import random
import signal
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from headway.access.secret_keys import SecretKeys
from headway.api.exposure import check_exposure
from headway.api.job_feed import JobFeed
from headway.api.limits import Limits
from headway.api.listening import listening_socket, url_of
from headway.api.live import LiveJobs
from headway.api.proxies import TrustedProxies
from headway.api.readiness import NotReady
from headway.api.serve_settings import ServeSettings
from headway.api.server_lock import ServerLock
from headway.api.tls import TlsIdentity
from headway.core.clock import Clock, SystemClock
from headway.core.statedir import StateDir
from headway.dispatch.briefing import Briefings
from headway.dispatch.inline_lane import InlineLane, InlineSettings
from headway.dispatch.lane_host import LaneHost
from headway.dispatch.loop_lag import LoopLag
from headway.dispatch.metrics import AttemptMetrics
from headway.dispatch.metrics_socket import read_worker_metrics
from headway.dispatch.service_manager import ServiceManager
from headway.dispatch.service_watch import ServiceWatch
from headway.dispatch.unix_doorbell import UnixDoorbell
from headway.dispatch.worker_life import WorkerStatus
from headway.dispatch.worker_process import WorkerProcess
from headway.jobs.environment import INHERITED, EnvironmentPolicy
from headway.jobs.registry import Registry, load_operations
from headway.store.sqlite.secrets import SqliteSecrets
from headway.store.sqlite.store import SqliteStore
from headway.store.sqlite.targets import SqliteOverlays, SqliteTargets

if TYPE_CHECKING:
    from fastapi import FastAPI

    from headway.api.entrance import Entrance
    from headway.api.extension import Extension
    from headway.api.premises import Premises
    from headway.store.accounts import AccountStore

_LOG = logging.getLogger("headway.server")
_RENEW_S = 60.0
_READ = "sign-of-life"
"""A name that stands for nothing in the store: reading it costs one seek of an index."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Server:
    """One server of a state directory; `run` is called once.

    Args:
        settings: How it is set up.
        on_ready: Told the URL and the worker's lanes once jobs are taken and run.
        extensions: Add routes of their own.
        manager: Told when the server is ready, lives and stops; None: nobody is.
    """

    def __init__(
        self,
        settings: ServeSettings,
        on_ready: Callable[[str, WorkerStatus], None],
        extensions: Sequence[Extension] = (),
        manager: ServiceManager | None = None,
    ) -> None:
        self._settings = settings
        self._on_ready = on_ready
        self._extensions = extensions
        self._manager = manager or ServiceManager()
        self._clock: Clock = SystemClock()
        self._state_dir = StateDir(settings.state_dir)
        self._worker = WorkerProcess(settings.worker(), self._clock)
        self._inline: InlineLane | None = None
        self._premises: Premises | None = None
        self._accounts: AccountStore | None = None
        self._limits = Limits(
            body_bytes=settings.body_bytes,
            streams_per_user=settings.streams_per_user,
            queue=settings.queue_limits,
        )
        self._proxies = TrustedProxies(settings.trusted_proxies)
        tls = settings.tls_files()
        self._tls = None if tls is None else TlsIdentity(tls)
        self._environment = EnvironmentPolicy(
            inherited=(*INHERITED, *settings.env_inherited), settable=settings.env_settable
        )
        self._stop_asked = asyncio.Event()
        self._stop_now = asyncio.Event()

    async def run(self) -> None:
        """Serve until told to stop.

        The first SIGTERM, Ctrl-C or hang-up drains: running attempts finish or are given back.
        The second ends everything at once.

        Raises:
            ConfigError: another server uses the directory, the port is taken, an operation module
                cannot be loaded, or the worker cannot work.
        """
        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self.stop)
        self._state_dir.create()
        with ServerLock(self._state_dir.server_lock) as lock:
            await check_exposure(self._settings.host, self._state_dir, self._clock)
            listening = listening_socket(self._settings.host, self._settings.port)
            with contextlib.closing(listening):
                lock.announce(self._url(listening))
                async with AsyncExitStack() as parts:
                    await self._serve(parts, listening)

    def stop(self) -> None:
        """Begin to drain; called again, end now."""
        (self._stop_now if self._stop_asked.is_set() else self._stop_asked).set()

    async def _serve(self, parts: AsyncExitStack, listening: socket.socket) -> None:
        # First: a module that cannot be loaded is then said in one sentence, by one process.
        registry = load_operations(*self._settings.operations)
        host = await self._host(parts, registry)
        # The worker loads its modules in its own process while this one loads the web framework.
        starting = await parts.enter_async_context(_background(self._worker.start()))
        parts.push_async_callback(self._drain)
        self._inline = InlineLane(host, registry, self._inline_settings())
        await self._inline.open()
        live = LiveJobs(host.store, host.doorbell, self._clock, self._limits.backup_poll_s)
        feed = JobFeed(host.store, host.doorbell, self._limits.backup_poll_s)
        entrance = self._entrance(host)
        await parts.enter_async_context(_background(entrance.run()))
        app = self._app(host, registry, self._inline, entrance, live, feed)
        await parts.enter_async_context(self._answering(app, listening))
        parts.callback(live.stop)
        parts.callback(feed.stop)
        if self._tls is not None:
            await parts.enter_async_context(_background(_renewing(self._tls)))
        await self._until_ready(starting, self._url(listening))
        # Also while it drains: a server that finishes its jobs is not one that hangs.
        read = partial(host.store.last_period, _READ)
        async with _background(ServiceWatch(self._manager, read).run()):
            await self._until_stopped()

    def _url(self, listening: socket.socket) -> str:
        return url_of(listening, "http" if self._tls is None else "https")

    async def _host(self, parts: AsyncExitStack, registry: Registry) -> LaneHost:
        from headway.api.overlays import Overlays
        from headway.api.premises import Premises
        from headway.api.secret_vault import SecretVault
        from headway.api.target_registry import TargetRegistry

        metrics = AttemptMetrics("api")
        store = SqliteStore(
            self._state_dir,
            self._clock,
            random.Random(),
            metrics.store_call,
            self._settings.queue_limits,
        )
        await store.open()
        parts.push_async_callback(store.close)
        doorbell = UnixDoorbell(self._state_dir)
        await doorbell.open()
        parts.push_async_callback(doorbell.close)
        await parts.enter_async_context(_background(LoopLag(self._clock, metrics.loop_lag).run()))
        keys = SecretKeys.of_server(self._state_dir.root, os.environ)
        secrets, targets = SqliteSecrets(store), SqliteTargets(store)
        briefings = Briefings(secrets, keys, targets, self._settings.data_dir)
        self._premises = Premises(
            Overlays(SqliteOverlays(store), registry, self._environment),
            SecretVault(secrets, keys),
            TargetRegistry(targets, self._settings.data_dir),
        )
        await self._premises.load()
        self._accounts = store.accounts
        return LaneHost(
            store, doorbell, self._state_dir, metrics, self._clock, random.Random(), briefings
        )

    def _inline_settings(self) -> InlineSettings:
        return InlineSettings(
            limit=self._settings.inline_threads,
            lease_s=self._settings.lease_s,
            log_bytes=self._settings.log_bytes,
            result_bytes=self._settings.result_bytes,
            environment=self._environment,
        )

    def _entrance(self, host: LaneHost) -> Entrance:
        # Imported here, as below: it loads the web framework.
        from headway.api.authenticator import bearer
        from headway.api.entrance import Entrance
        from headway.api.sessions import session_cookie

        ways = (bearer, session_cookie)
        beat_s = self._limits.heartbeat_s
        return Entrance(host.store.accounts, host.doorbell, self._clock, beat_s, ways)

    def _app(
        self,
        host: LaneHost,
        registry: Registry,
        inline: InlineLane,
        entrance: Entrance,
        live: LiveJobs,
        feed: JobFeed,
    ) -> FastAPI:
        # Imported here: FastAPI takes longer than everything that stands above.
        from headway.api.app import Collaborators, create_app
        from headway.api.metrics import ApiMetrics

        metrics = ApiMetrics()
        metrics.worker_restarts.set_function(lambda: self._worker.restarts)
        metrics.worker_silenced.set_function(lambda: self._worker.silenced)
        most = self._settings.max_queued
        metrics.queue_limit.set(math.inf if most is None else most)
        parts = Collaborators(
            registry=registry,
            store=host.store,
            doorbell=host.doorbell,
            state_dir=self._state_dir,
            live=live,
            feed=feed,
            inline=inline,
            entrance=entrance,
            attempts_registry=host.metrics.registry,
            metrics=metrics,
            clock=self._clock,
            limits=self._limits,
            environment=self._environment,
            worker_metrics=lambda: read_worker_metrics(self._state_dir),
            not_ready=self._not_ready,
            premises=self._premises,
            accounts=self._accounts,
            extensions=self._extensions,
            fair_use=self._settings.fair_use(),
            hosts=self._settings.hosts(),
            proxies=self._proxies,
        )
        return create_app(parts)

    @asynccontextmanager
    async def _answering(self, app: FastAPI, listening: socket.socket) -> AsyncIterator[None]:
        """Answer requests while the block runs; then let those on their way be answered."""
        from headway.api.web_server import WebServer

        tls = None if self._tls is None else self._tls.context
        web = WebServer(app, self._limits.connections, self._proxies, tls)
        task = asyncio.create_task(web.serve([listening]))
        try:
            yield
        finally:
            web.should_exit = True
            await task

    async def _until_ready(self, starting: asyncio.Task[WorkerStatus], url: str) -> None:
        """Wait until the worker is ready, or the server is told to stop before."""
        async with _background(self._stop_asked.wait()) as stop:
            await asyncio.wait({starting, stop}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            self._on_ready(url, await starting)
            self._manager.ready(f"serving at {url}")
            # What was loaded is never garbage: a full collection over it takes 110 ms (trap 16).
            gc.collect()
            gc.freeze()

    async def _until_stopped(self) -> None:
        await self._stop_asked.wait()
        _LOG.info("stopping: running attempts finish or are given back")
        self._manager.stopping("stopping: running attempts finish or are given back")
        # Still answering: whoever follows a draining job sees how it ends.
        await self._drain()

    async def _drain(self) -> None:
        """Let what runs finish or give it back. Calling it again finds nothing left to do."""
        stopping = asyncio.gather(self._worker.stop(), self._drain_inline())
        async with _background(self._stop_now.wait()) as now:
            await asyncio.wait({stopping, now}, return_when=asyncio.FIRST_COMPLETED)
            if not stopping.done():
                self._worker.hurry()
            await stopping

    async def _drain_inline(self) -> None:
        if self._inline is None:
            return
        limit_s, grace_s = self._settings.drain_s, self._settings.drain_grace_s
        async with (
            _background(self._inline.close(limit_s, grace_s)) as gentle,
            _background(self._stop_now.wait()) as now,
        ):
            await asyncio.wait({gentle, now}, return_when=asyncio.FIRST_COMPLETED)
        await self._inline.close()

    def _not_ready(self) -> NotReady | None:
        if self._stop_asked.is_set():
            return NotReady.STOPPING
        return None if self._worker.ready else NotReady.STARTING


@asynccontextmanager
async def _background(work: Coroutine[Any, Any, Any]) -> AsyncIterator[asyncio.Task[Any]]:
    """Run `work` beside the block; cancel it when the block is left."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _renewing(tls: TlsIdentity) -> None:
    """Take over a certificate that was renewed; nobody restarts a server for that."""
    while True:
        await asyncio.sleep(_RENEW_S)
        await asyncio.to_thread(tls.renew)
