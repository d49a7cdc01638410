"""Puts the API together from its collaborators."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fastapi import APIRouter, FastAPI
from prometheus_client import CollectorRegistry
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from headway import __version__
from headway.api.account_routes import AccountRoutes
from headway.api.artifact_routes import ArtifactRoutes
from headway.api.audit_routes import AuditRoutes
from headway.api.body_limit import BodyLimit
from headway.api.entrance import Entrance
from headway.api.extension import Extension, ExtensionParts
from headway.api.fair_use import FairUse, FairUseSettings
from headway.api.health_routes import HealthRoutes
from headway.api.job_access import JobAccess
from headway.api.job_feed import JobFeed
from headway.api.job_routes import JobRoutes
from headway.api.job_stream import JobStreamRoutes
from headway.api.known_hosts import KnownHosts
from headway.api.limit_routes import LimitRoutes
from headway.api.limits import Limits
from headway.api.live import LiveJobs
from headway.api.log_routes import LogRoutes
from headway.api.log_stream import LogStreams
from headway.api.metrics import ApiMetrics, MetricsPage
from headway.api.nesting_limit import NestingLimit
from headway.api.openapi import describe
from headway.api.operation_routes import OperationRoutes
from headway.api.premises import Premises
from headway.api.problems import install_problem_handlers
from headway.api.provision_routes import ProvisionRoutes
from headway.api.proxies import TrustedProxies
from headway.api.readiness import NotReady, Readiness
from headway.api.request_guard import RequestGuard
from headway.api.request_log import RequestLog
from headway.api.store_probe import StoreProbe
from headway.api.stream_places import StreamPlaces
from headway.api.submission import Submissions
from headway.api.token_routes import TokenRoutes
from headway.core.clock import Clock, SystemClock
from headway.core.statedir import StateDir
from headway.dispatch.doorbell import Doorbell
from headway.dispatch.inline_lane import InlineLane
from headway.jobs.environment import EnvironmentPolicy
from headway.jobs.registry import Registry
from headway.store.accounts import AccountStore
from headway.store.store import Store


def _always_ready() -> NotReady | None:
    return None


async def _no_worker() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class Collaborators:
    """What the API works with; all of it outlives the application.

    Attributes:
        inline: Runs light operations in this process.
        entrance: Lets in who may come in.
        attempts_registry: Metrics of the store and the inline lane in this process.
        worker_metrics: The metrics of each worker that answers, as text, by the worker's name.
        not_ready: Why the server should be given no work; None when it should.
        premises: What submissions are checked against; None: nothing.
        accounts: Keeps the audit log of what is provided; None: there is none.
        extensions: Add routes of their own.
        fair_use: How fast users may ask, and how urgent their jobs may be.
        hosts: The names under which the server answers.
        proxies: Whose word is taken for where a request came from.
    """

    registry: Registry
    store: Store
    doorbell: Doorbell
    state_dir: StateDir
    live: LiveJobs
    feed: JobFeed
    inline: InlineLane
    entrance: Entrance
    attempts_registry: CollectorRegistry
    metrics: ApiMetrics = field(default_factory=ApiMetrics)
    clock: Clock = field(default_factory=SystemClock)
    limits: Limits = field(default_factory=Limits)
    environment: EnvironmentPolicy = field(default_factory=EnvironmentPolicy)
    worker_metrics: Callable[[], Awaitable[Mapping[str, str]]] = _no_worker
    not_ready: Callable[[], NotReady | None] = _always_ready
    premises: Premises | None = None
    accounts: AccountStore | None = None
    extensions: Sequence[Extension] = ()
    fair_use: FairUseSettings = field(default_factory=FairUseSettings)
    hosts: KnownHosts = field(default_factory=lambda: KnownHosts("127.0.0.1"))
    proxies: TrustedProxies = field(default_factory=TrustedProxies)


def create_app(parts: Collaborators) -> FastAPI:
    """The application; it starts and stops nothing."""
    app = FastAPI(
        title="Headway",
        version=__version__,
        summary="Durable jobs over HTTP.",
        docs_url=None,  # the page would fetch its scripts from a foreign host
        redoc_url=None,
        redirect_slashes=False,
    )
    install_problem_handlers(app)
    parts.metrics.followers.set_function(lambda: parts.live.watched)
    fair_use = FairUse(parts.fair_use, parts.clock)
    parts.entrance.gate.limit(fair_use.check_request)
    for router in _routers(parts, fair_use):
        # Not include_router: it hides the routes, and the gate has to stand around each of them.
        app.router.routes.extend(router.routes)
    parts.entrance.gate.guard(app.router.routes)
    describe(app)
    app.add_middleware(NestingLimit)
    app.add_middleware(
        BodyLimit,
        limit_bytes=parts.limits.body_bytes,
        together_bytes=max(parts.limits.bodies_bytes, parts.limits.body_bytes),
        of_one_bytes=max(parts.limits.bodies_bytes_of_one, parts.limits.body_bytes),
    )
    app.add_middleware(RequestGuard, hosts=parts.hosts)
    app.add_middleware(RequestLog, metrics=parts.metrics, clock=parts.clock)
    if parts.proxies:
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=list(parts.proxies.names))
    return app


def _routers(parts: Collaborators, fair_use: FairUse) -> list[APIRouter]:
    submissions = Submissions(parts.registry, parts.environment, parts.premises, fair_use)
    access = JobAccess(
        parts.store,
        parts.doorbell,
        parts.live,
        parts.state_dir,
        parts.inline.admit,
        parts.feed,
        parts.premises,
        submissions,
        fair_use,
        denied=parts.entrance.trail.denied,
    )
    streams = LogStreams(parts.live, parts.clock, parts.limits)
    places = StreamPlaces(parts.limits.streams_per_user)
    readiness = Readiness(parts.not_ready, StoreProbe(parts.store, parts.clock))
    shared = ExtensionParts(
        access,
        submissions,
        parts.registry,
        parts.feed,
        parts.clock,
        parts.entrance,
        premises=parts.premises,
    )
    routes = (
        OperationRoutes(parts.registry, submissions, access),
        # Before the routes of a job, whose id `stream` would else be.
        JobStreamRoutes(parts.feed, parts.clock, parts.limits, places),
        JobRoutes(access, parts.clock, readiness),
        LogRoutes(access, streams, parts.limits, places),
        ArtifactRoutes(access),
        LimitRoutes(parts.store.limits, parts.doorbell, parts.accounts, parts.limits.queue),
        HealthRoutes(readiness, _metrics_page(parts)),
        AccountRoutes(parts.entrance),
        TokenRoutes(parts.entrance, parts.clock),
        AuditRoutes(parts.entrance),
    )
    own = [each.router() for each in routes]
    if parts.premises is not None:
        own.append(ProvisionRoutes(parts.premises, parts.accounts).router())
    return own + [extension(shared) for extension in parts.extensions]


def _metrics_page(parts: Collaborators) -> MetricsPage:
    registries = (parts.metrics.registry, parts.attempts_registry)
    return MetricsPage(parts.store, registries, parts.inline.report, parts.worker_metrics)
