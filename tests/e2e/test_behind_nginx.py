"""N5: behind a real nginx that ends TLS, as docs/deploying.md sets it up."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator

import httpx
import pytest
from job_servers import JobServer, StartServer
from nginx import MISSING, NGINX, Proxy, nginx_before

from headway.client import Client
from headway.client.following import LogChunk

pytestmark = pytest.mark.skipif(NGINX is None, reason=MISSING)


@pytest.fixture(scope="module")
def proxied(
    start_module_server: StartServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[JobServer, Proxy]]:
    behind = start_module_server("--trusted-proxy", "127.0.0.1")
    with nginx_before(behind.port, tmp_path_factory.mktemp("nginx")) as proxy:
        yield behind, proxy


def test_a_job_is_followed_as_it_speaks(proxied: tuple[JobServer, Proxy]) -> None:
    """SSE is not held back: lines arrive while the job, which waits for us, still runs."""
    _, proxy = proxied
    with Client(proxy.url, cacert=str(proxy.ca_file)) as client:
        job = client.submit("talk", {"lines": 100_000, "pause_s": 0.05})
        seen = ""
        for piece in client.follow(job.id):
            seen += piece.text if isinstance(piece, LogChunk) else ""
            if seen.count("\n") >= 3:
                break
        assert not client.get(job.id).state.is_terminal
        client.cancel(job.id)


def test_what_the_proxy_finds_too_large_is_said_in_a_sentence(
    proxied: tuple[JobServer, Proxy],
) -> None:
    """Its answer is no problem document, and must not be taken for one."""
    server, proxy = proxied
    told = server.headway(
        "submit", "echo", "--server", proxy.url, "--cacert", str(proxy.ca_file),
        "--json-input", "-", input=json.dumps({"text": "x" * (2 << 20)}),
    )  # fmt: skip
    assert told.returncode != 0
    assert "413" in told.stderr
    assert "Traceback" not in told.stderr
    assert "<html" not in told.stderr


def test_pages_of_other_sites_are_refused_there_too(proxied: tuple[JobServer, Proxy]) -> None:
    _, proxy = proxied
    with httpx.Client(
        base_url=proxy.url, verify=ssl.create_default_context(cafile=proxy.ca_file)
    ) as http:
        for headers, status in (
            ({"origin": proxy.url}, 202),
            ({"origin": proxy.url, "sec-fetch-site": "same-origin"}, 202),
            ({"origin": proxy.url.replace("https", "http")}, 403),
            ({"origin": "https://evil.example"}, 403),
        ):
            answer = http.post(
                "/v1/operations/echo", json={"input": {"text": "x"}}, headers=headers
            )
            assert answer.status_code == status, (headers, answer.text)
