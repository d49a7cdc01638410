"""A result that is too large fails its attempt with the numbers and the way out, in every lane."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from job_servers import JobServer, StartServer

from headway.client import Client, SubmitOptions

LIMIT = 1_000_000
OPERATIONS = Path(__file__).with_name("large_result_ops.py")
LANES = ("long", "short", "inline")


@pytest.fixture(scope="module")
def small_results(
    start_module_server: StartServer, tmp_path_factory: pytest.TempPathFactory
) -> JobServer:
    config = tmp_path_factory.mktemp("config") / "serve.yaml"
    config.write_text(f"result_bytes: {LIMIT}\n")
    flags = ("--config", str(config), "--no-bench", "--long", "1", "--short", "1")
    return start_module_server(*flags, operations=OPERATIONS)


@pytest.fixture
def client(small_results: JobServer) -> Iterator[Client]:
    with small_results.client() as client:
        yield client


@pytest.mark.parametrize("lane", LANES)
def test_a_result_of_the_largest_size_is_kept(client: Client, lane: str) -> None:
    assert client.run(f"{lane}_text", {"size_bytes": LIMIT}) == "x" * (LIMIT - 2)


@pytest.mark.parametrize("lane", LANES)
def test_one_byte_more_fails_the_job_and_is_not_tried_again(
    client: Client, small_results: JobServer, lane: str
) -> None:
    job = client.submit(f"{lane}_text", {"size_bytes": LIMIT + 1})
    ended = client.wait(job.id, timeout_s=60)
    assert (ended.outcome, ended.attempt) == ("failed", 1)
    assert ended.error is not None
    assert ended.error.type == "ResultTooLarge"
    assert "1,000,001 bytes" in ended.error.message
    assert "1,000,000" in ended.error.message
    assert "job.artifact" in ended.error.message
    assert not (small_results.state_dir / "results" / job.id).exists()


def test_what_nobody_wants_to_keep_may_have_any_size(client: Client) -> None:
    options = SubmitOptions(ignore_result=True)
    job = client.submit("short_text", {"size_bytes": 5 * LIMIT}, options=options)
    assert client.wait(job.id, timeout_s=60).outcome == "succeeded"


def test_an_artifact_of_that_size_is_the_way_out(client: Client, small_results: JobServer) -> None:
    job = client.submit("as_artifact", {"size_bytes": LIMIT + 1})
    assert client.result(job.id, timeout_s=60) == "text.json"
    url = f"{small_results.url}/v1/jobs/{job.id}/artifacts/text.json"
    assert len(httpx.get(url, timeout=60).content) == LIMIT - 1
