"""N5, traps 13-15 in spirit: what a page of another site can make a browser send is refused."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import httpx
import pytest

from headway.api.known_hosts import KnownHosts

REBOUND = ["evil.example", "evil.example:8484", "127.0.0.1.evil.example", "localhost.evil.example",
           "127.0.0.1:8484@evil.example", "", "local host", "127.0.0.1:x",
           "192.168.1.7"]  # fmt: skip


OWN = ["127.0.0.1", "localhost:1", "LOCALHOST", "127.3.4.5:80", "[::1]:9"]


async def test_a_name_that_is_made_to_point_here_is_refused(api: Any) -> None:
    """DNS rebinding: the browser believes that this server is that site."""
    for host in REBOUND:
        answer = await api.http.get("/v1/jobs", headers={"host": host})
        assert answer.status_code == 421, (host, answer.text)
        assert "--allowed-host" in answer.json()["detail"]
    for host in OWN:
        answer = await api.http.get("/v1/jobs", headers={"host": host})
        assert answer.status_code == 200, (host, answer.text)


async def test_two_hosts_or_none_are_refused(api: Any) -> None:
    for hosts in (b"Host: 127.0.0.1\r\nHost: evil.example\r\n", b""):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(api.url.split(":")[2]))
        writer.write(b"GET /v1/jobs HTTP/1.1\r\n" + hosts + b"connection: close\r\n\r\n")
        assert b"HTTP/1.1 400 " in await reader.read()
        writer.close()


FOREIGN: list[dict[str, str]] = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1:1"},
    {"origin": "https://127.0.0.1.evil.example"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site", "origin": "http://127.0.0.1:1"},
]


async def test_a_form_or_fetch_of_another_site_starts_nothing(api: Any) -> None:
    """A page on the internet reaches a server on loopback through its reader's browser."""
    body = {"input": {"model": "x"}}
    paths = ("/v1/operations/train", "/v1/jobs:batch", "/v1/jobs/x/cancel")
    for path, headers in itertools.product(paths, FOREIGN):
        answer = await api.http.post(path, json=body, headers=headers)
        assert answer.status_code == 403, (path, headers, answer.text)
        assert "another site" in answer.json()["detail"]
    assert (await api.http.get("/v1/jobs")).json()["jobs"] == []


async def test_requests_of_the_own_pages_and_of_programs_pass(api: Any) -> None:
    own = api.url.removeprefix("http://")
    for headers in (
        {},
        {"origin": f"http://{own}"},
        {"origin": f"http://{own}", "sec-fetch-site": "same-origin"},
        # A proxy in front has another name; what the browser says of the site still holds.
        {"origin": "https://bench.example", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
    ):
        answer = await api.http.post(
            "/v1/operations/train", json={"input": {"model": "x"}}, headers=headers
        )
        assert answer.status_code == 202, (headers, answer.text)


async def test_no_header_of_cors_lets_another_site_read(api: Any) -> None:
    headers = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    asked = await api.http.options("/v1/jobs", headers=headers)
    read = await api.http.get("/v1/jobs", headers={"origin": "https://evil.example"})
    for answer in (asked, read):
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert read.headers["cross-origin-resource-policy"] == "same-origin"


def test_a_server_on_all_addresses_takes_numbers_and_its_names() -> None:
    hosts = KnownHosts("0.0.0.0", ["Bench.Example"])
    for host in ("10.1.2.3:8484", "[fe80::1]", "bench.example", "BENCH.example:443", "localhost"):
        assert hosts.has(host), host
    assert not hosts.has("evil.example")


async def test_every_answer_carries_the_headers_bugs_and_refusals_included(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = await api.submit(input={"model": "x"})
    answers: dict[str, httpx.Response] = {
        path: await api.http.get(path, headers=headers)
        for path, headers in (
            ("/v1/jobs", {}),
            (f"/v1/jobs/{job_id}", {}),
            ("/nothing", {}),
            ("/healthz", {}),
            ("/openapi.json", {}),
            ("/v1/operations", {"host": "evil.example"}),
            ("/" + "x" * 9000, {}),
        )
    }

    async def fail(*_: object) -> None:
        raise RuntimeError("secret text")

    monkeypatch.setattr(api.store, "list_jobs", fail)
    answers["bug"] = await api.http.get("/v1/jobs")
    assert answers["bug"].status_code == 500
    assert "secret text" not in answers["bug"].text
    assert answers["bug"].json()["request_id"] == answers["bug"].headers["x-request-id"]
    for path, answer in answers.items():
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; "), path
        assert "unsafe" not in policy, path
        assert "frame-ancestors 'none'" in policy, path
        assert answer.headers.get_list("x-content-type-options") == ["nosniff"], path
        assert answer.headers["referrer-policy"] == "same-origin", path
        assert answer.headers["cache-control"] == "no-store", path
        assert "server" not in answer.headers, path
