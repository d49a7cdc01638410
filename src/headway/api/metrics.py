"""One page of metrics for all processes of a server (J15).

Every process counts in a registry of its own; the workers hand their numbers over a socket each
when the page is asked for, and the totals that must survive restarts come from the store. Samples
of a process carry the label `process`. No shared files and no multi-process registry are involved.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families

from headway.core.errors import StoreUnavailable
from headway.dispatch.worker_settings import OWN_WORKER
from headway.store.counts import Counts
from headway.store.limits import Use
from headway.store.store import Store

# From a no-op GET (0.3 ms) to the longest wait that a client may ask for.
_REQUEST_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 300)

NAMED_WORKSPACES = 50
"""Workspaces with series of their own: a label must not have as many values as there are teams."""
OTHERS = "(others)"


class ApiMetrics:
    """What the API process counts of itself."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Histogram(
            "headway_http_request_duration_seconds",
            "Time from a request's arrival to the end of its answer.",
            ["method", "route", "status"],
            buckets=_REQUEST_BUCKETS_S,
            registry=self.registry,
        )
        self.refusals = Counter(
            "headway_http_rejections",
            "Requests refused for lack of capacity (429 and 503).",
            ["route", "status"],
            registry=self.registry,
        )
        self.followers = Gauge(
            "headway_watched_jobs",
            "Jobs that a client waits for or follows right now.",
            registry=self.registry,
        )
        self.queue_limit = Gauge(
            "headway_queue_limit_jobs",
            "Jobs of all workspaces together that may wait.",
            registry=self.registry,
        )
        self.worker_restarts = Gauge(
            "headway_worker_restarts",
            "Times the worker process died and was started again.",
            registry=self.registry,
        )
        self.worker_silenced = Gauge(
            "headway_worker_silenced",
            "Times the worker process was killed because it gave no sign of life.",
            registry=self.registry,
        )


class MetricsPage:
    """Puts the page together.

    Args:
        store: Totals of jobs.
        registries: The registries of this process.
        refresh: Brings what is only sampled up to date.
        worker_texts: The numbers of each worker that answers, as text, by the worker's name.
    """

    def __init__(
        self,
        store: Store,
        registries: Iterable[CollectorRegistry],
        refresh: Callable[[], None],
        worker_texts: Callable[[], Awaitable[Mapping[str, str]]],
    ) -> None:
        self._store = store
        self._registries = tuple(registries)
        self._refresh = refresh
        self._worker_texts = worker_texts

    async def render(self) -> bytes:
        """The page in Prometheus text format."""
        self._refresh()
        merged: dict[str, Metric] = {}
        for registry in self._registries:
            _merge(merged, registry.collect(), process="api")
        texts = await self._worker_texts()
        for name, text in texts.items():
            _merge(merged, text_string_to_metric_families(text), process=name)
        families = [*_workers_of(texts), *merged.values(), *await self._job_families()]
        return generate_latest(_Collected(families))

    async def _job_families(self) -> list[Metric]:
        try:
            counts, use = await self._store.counts(), await self._store.limits.use()
        except StoreUnavailable:
            return [_store_up(False)]  # the page tells of the trouble instead of failing with it
        return [_store_up(True), *_families_of(counts), _use_of_workspaces(use)]


class _Collected:
    """Families that were collected already, in the form that the text writer takes."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _merge(merged: dict[str, Metric], families: Iterable[Metric], process: str) -> None:
    for family in families:
        # When a series was created says nothing that the scraper does not know. In the worker's
        # text such series are families of their own.
        if family.name.endswith("_created"):
            continue
        target = merged.setdefault(
            family.name, Metric(family.name, family.documentation, family.type, family.unit)
        )
        for sample in family.samples:
            if not sample.name.endswith("_created"):
                labels = {**sample.labels, "process": process}
                target.add_sample(sample.name, labels, sample.value, sample.timestamp)


def _families_of(counts: Counts) -> Iterator[Metric]:
    live = GaugeMetricFamily(
        "headway_jobs",
        "Jobs that have not ended.",
        labels=["operation", "lane", "state", "wait_reason"],
    )
    for count in counts.live:
        reason = "" if count.wait_reason is None else count.wait_reason.value
        live.add_metric([count.operation, count.lane, count.state.value, reason], count.jobs)
    yield live
    ended = CounterMetricFamily(
        "headway_jobs_ended",
        "Jobs that have ended, since the state directory was made.",
        labels=["operation", "outcome"],
    )
    for total in counts.ended:
        ended.add_metric([total.operation, total.outcome.value], total.jobs)
    yield ended


def _use_of_workspaces(use: Iterable[Use]) -> Metric:
    """Who waits and runs how much: the busiest by name, the others together."""
    totals: dict[str, tuple[int, int]] = {}
    for each in use:
        waiting, running = totals.get(each.workspace, (0, 0))
        totals[each.workspace] = (waiting + each.waiting, running + each.running)
    busiest = sorted(totals, key=lambda name: (-sum(totals[name]), name))
    family = GaugeMetricFamily(
        "headway_workspace_jobs",
        "Jobs that have not ended, by workspace; the busiest by name.",
        labels=["workspace", "state"],
    )
    named, others = busiest[:NAMED_WORKSPACES], busiest[NAMED_WORKSPACES:]
    for name in named:
        family.add_metric([name, "waiting"], totals[name][0])
        family.add_metric([name, "running"], totals[name][1])
    if others:
        family.add_metric([OTHERS, "waiting"], sum(totals[name][0] for name in others))
        family.add_metric([OTHERS, "running"], sum(totals[name][1] for name in others))
    return family


def _store_up(up: bool) -> Metric:
    return GaugeMetricFamily("headway_store_up", "1 when the store answers.", value=float(up))


def _workers_of(names: Iterable[str]) -> Iterator[Metric]:
    answering = set(names)
    yield GaugeMetricFamily(
        "headway_worker_up",
        "1 when the server's own worker answers.",
        value=float(OWN_WORKER in answering),
    )
    yield GaugeMetricFamily("headway_workers", "Workers that answer.", value=len(answering))
