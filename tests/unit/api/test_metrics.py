"""One page of metrics out of several processes (J15)."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from headway.api.metrics import MetricsPage
from headway.store.submissions import NewJob


def registry_with(started: int) -> CollectorRegistry:
    registry = CollectorRegistry()
    Counter("started", "Begun.", ["lane"], registry=registry).labels("long").inc(started)
    Gauge("lag_seconds", "Lag.", ["process"], registry=registry).labels("own").set(started)
    return registry


async def page(api: Any, **workers: bytes) -> dict[str, Any]:
    async def worker_texts() -> dict[str, str]:
        return {name: text.decode() for name, text in workers.items()}

    text = await MetricsPage(api.store, [registry_with(1)], lambda: None, worker_texts).render()
    return {family.name: family for family in text_string_to_metric_families(text.decode())}


async def test_families_of_all_processes_are_one_family(api: Any) -> None:
    workers = {name: generate_latest(registry_with(n)) for name, n in (("worker", 5), ("w2", 7))}
    families = await page(api, **workers)
    values = {s.labels["process"]: s.value for s in families["started"].samples}
    assert values == {"api": 1.0, "worker": 5.0, "w2": 7.0}
    assert families["headway_workers"].samples[0].value == 2.0
    assert families["started"].type == "counter"
    assert {s.labels["process"] for s in families["lag_seconds"].samples} == set(values)
    assert families["headway_worker_up"].samples[0].value == 1.0


async def test_a_page_without_a_worker_says_so(api: Any) -> None:
    families = await page(api)
    assert families["headway_worker_up"].samples[0].value == 0.0
    assert [s.labels["process"] for s in families["started"].samples] == ["api"]


async def test_jobs_are_counted_by_state_and_outcome(api: Any) -> None:
    for _ in range(2):
        await api.submit("nothing")
    await api.finish(await api.claim())
    families = await page(api)
    [live] = families["headway_jobs"].samples
    assert (live.labels["operation"], live.labels["state"], live.value) == ("nothing", "PENDING", 1)
    [ended] = families["headway_jobs_ended"].samples
    assert (ended.labels["outcome"], ended.value) == ("succeeded", 1.0)


async def test_labels_stay_few_whatever_paths_are_tried(api: Any) -> None:
    for path in ("/a", "/b?x=1", "/v1/jobs/zzz", "/v1/jobs/yyy"):
        await api.http.get(path)
    text = (await api.http.get("/metrics")).text
    routes = {
        line.partition('route="')[2].partition('"')[0]
        for line in text.splitlines()
        if line.startswith("headway_http_request_duration_seconds_count")
    }
    assert routes == {"none", "/v1/jobs/{job_id}"}


async def test_workspaces_are_counted_and_only_the_busiest_named(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J25: a label has not as many values as there are teams."""
    monkeypatch.setattr("headway.api.metrics.NAMED_WORKSPACES", 2)
    for name, count in (("big", 3), ("mid", 2), ("small", 1), ("tiny", 1)):
        job = NewJob(operation="train", lane="long", input_json="{}", workspace=name)
        await api.store.submit([job] * count)
    await api.store.claim("w", {"long": 1}, 60.0)
    samples = (await page(api))["headway_workspace_jobs"].samples
    values = {(s.labels["workspace"], s.labels["state"]): s.value for s in samples}
    assert {name for name, _ in values} == {"big", "mid", "(others)"}
    assert sum(values.values()) == 7
    assert values["(others)", "waiting"] == 2
    assert sum(value for (_, state), value in values.items() if state == "running") == 1
