"""A page is found with slashes at the end of its address too, and no other site is."""

from __future__ import annotations

from typing import Any

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}

PAGES = {
    "/jobs/": "/jobs",
    "/jobs//": "/jobs",
    "/jobs/?state=RUNNING&q=a%20b": "/jobs?state=RUNNING&q=a%20b",
    "/jobs/01abc/": "/jobs/01abc",
    "/targets/": "/targets",
    "/runs/new/": "/runs/new",
    "/login/": "/login",
    "/jobs/a%0d%0aset-cookie:%20x=1/": "/jobs/a%0D%0Aset-cookie%3A%20x%3D1",
    "/jobs/a%3fb%2f": "/jobs/a%3Fb",
}

NO_PAGES = ["//evil.example/", "//evil.example/jobs/", "/%5cevil.example/", "/%2fevil.example/",
            "/nothing/", "/jobs/1/2/", "/workspace/", "/v1/jobs/"]  # fmt: skip


async def test_a_browser_is_sent_to_the_page_that_is_meant(start_full_api: Any) -> None:
    """It was answered 404 in JSON."""
    async with start_full_api() as api:
        for written, meant in PAGES.items():
            answer = await api.http.get(written, headers=BROWSER)
            assert (answer.status_code, answer.headers.get("location")) == (303, meant), written


async def test_what_is_no_page_of_this_server_is_not_redirected_to(start_full_api: Any) -> None:
    async with start_full_api() as api:
        for path in NO_PAGES:
            answer = await api.http.get(f"{api.url}{path}", headers=BROWSER)
            assert answer.status_code == 404, path
            assert "location" not in answer.headers


async def test_programs_are_told_that_there_is_nothing(start_full_api: Any) -> None:
    async with start_full_api() as api:
        for call in (api.http.get("/jobs/"), api.http.post("/login/", headers=BROWSER)):
            answer = await call
            assert answer.status_code == 404
            assert answer.headers["content-type"] == "application/problem+json"
