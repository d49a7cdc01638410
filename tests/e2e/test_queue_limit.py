"""A server takes no more jobs than may wait on it, and says so (J25)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from job_servers import JobServer, StartServer

from headway.client import Client, RetryPolicy, ServerBusy

LIMIT = 3
WAITING = {"input": {}, "not_before": "2100-01-01T00:00:00Z"}


@pytest.fixture(scope="module")
def full_server(
    start_module_server: StartServer, tmp_path_factory: pytest.TempPathFactory
) -> JobServer:
    config = tmp_path_factory.mktemp("config") / "serve.yaml"
    config.write_text(f"max_queued: {LIMIT}\n")
    return start_module_server("--config", str(config))


@pytest.fixture
def http(full_server: JobServer) -> Iterator[httpx.Client]:
    """Of a server on which as many jobs wait as may."""
    with httpx.Client(base_url=full_server.url, timeout=60) as http:
        while submit(http).status_code == 202:
            pass
        yield http


def submit(http: httpx.Client) -> httpx.Response:
    return http.post("/v1/operations/echo", json=WAITING)


def waiting(http: httpx.Client) -> list[Any]:
    jobs: list[Any] = http.get("/v1/jobs", params={"state": "PENDING"}).json()["jobs"]
    return jobs


def test_the_job_over_the_limit_is_refused_with_numbers_and_a_time(http: httpx.Client) -> None:
    assert len(waiting(http)) == LIMIT
    refused = submit(http)
    assert refused.status_code == 503
    assert refused.headers["content-type"] == "application/problem+json"
    assert int(refused.headers["retry-after"]) >= 1
    words = f"this server has {LIMIT} jobs waiting and may have {LIMIT}; these would be 1 more"
    assert words in refused.json()["detail"]
    assert len(waiting(http)) == LIMIT


def test_a_batch_over_the_limit_is_refused_as_a_whole(http: httpx.Client) -> None:
    http.post(f"/v1/jobs/{waiting(http)[0]['id']}/cancel").raise_for_status()
    batch = {"jobs": [{"operation": "echo", **WAITING}] * 2}
    assert http.post("/v1/jobs:batch", json=batch).status_code == 503
    assert len(waiting(http)) == LIMIT - 1
    assert submit(http).status_code == 202


def test_a_retry_of_an_ended_job_needs_room_like_any_other(http: httpx.Client) -> None:
    (ended, *_) = waiting(http)
    http.post(f"/v1/jobs/{ended['id']}/cancel").raise_for_status()
    assert submit(http).status_code == 202
    assert http.post(f"/v1/jobs/{ended['id']}/retry").status_code == 503


def test_a_client_waits_as_long_as_it_is_patient(
    http: httpx.Client, full_server: JobServer
) -> None:
    with (
        Client(full_server.url, retry=RetryPolicy(patience_s=0.5)) as client,
        pytest.raises(ServerBusy, match="jobs waiting"),
    ):
        client.submit("echo", {})


def test_the_limit_is_shown_beside_those_of_workspaces(
    http: httpx.Client, full_server: JobServer
) -> None:
    assert http.get("/v1/limits").json()["max_queued"] == LIMIT
    http.put("/v1/limits/workspaces/default", json={"max_queued": 2_000_000}).raise_for_status()
    assert http.get("/v1/limits").json()["max_queued_bytes"] == 16 * 1024**3
    shown = full_server.headway("admin", "limits", "show").stdout
    assert f"All workspaces together: {LIMIT} jobs may wait" in shown
    assert " 2000000 " in shown


def test_the_metrics_have_the_limit_beside_what_waits_and_count_the_refusals(
    http: httpx.Client,
) -> None:
    submit(http)
    lines = http.get("/metrics").text.splitlines()
    assert 'headway_queue_limit_jobs{process="api"} 3.0' in lines
    assert 'headway_workspace_jobs{state="waiting",workspace="default"} 3.0' in lines
    refusals = [
        float(line.split()[-1]) for line in lines
        if line.startswith("headway_http_rejections_total") and 'status="503"' in line
        and 'route="/v1/operations/echo"' in line
    ]  # fmt: skip
    assert refusals[0] >= 1
