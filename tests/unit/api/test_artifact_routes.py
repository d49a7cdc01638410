"""Listing and downloading what jobs left behind."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from headway.api.artifact_routes import harmless_type


async def job_with_artifacts(api: Any, **files: bytes) -> str:
    job_id: str = await api.submit(input={"model": "x"})
    claimed = await api.claim()
    leave_files(api.state_dir.job_artifacts(job_id) / "1", files)
    for name in files:
        await record(api, claimed, name.replace("__", "/"))
    return job_id


async def record(api: Any, claimed: Any, name: str) -> None:
    await api.store.add_event(claimed.claim, "artifact", json.dumps({"name": name}))


def leave_files(directory: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = directory / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


async def test_artifacts_are_listed_with_size_and_type(api: Any) -> None:
    job_id = await job_with_artifacts(api, **{"report.html": b"<p>", "plots__a.png": b"12345"})
    (api.state_dir.job_artifacts(job_id) / "1" / ".half.partial-1").write_bytes(b"x")
    listed = (await api.http.get(f"/v1/jobs/{job_id}/artifacts")).json()["artifacts"]
    assert listed == [
        {"name": "plots/a.png", "size_bytes": 5, "media_type": "image/png", "attempt": 1},
        {"name": "report.html", "size_bytes": 3, "media_type": "text/html", "attempt": 1},
    ]


async def test_the_type_that_the_job_gave_goes_before_the_guessed_one(api: Any) -> None:
    job_id = await api.submit(input={"model": "x"})
    claimed = await api.claim()
    path = api.state_dir.job_artifacts(job_id) / "1" / "trace.bin"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x")
    detail = '{"name":"trace.bin","media_type":"application/x-trace","size_bytes":1}'
    await api.store.add_event(claimed.claim, "artifact", detail)
    answer = await api.http.get(f"/v1/jobs/{job_id}/artifacts/trace.bin")
    assert answer.headers["content-type"] == "application/x-trace"


async def test_a_page_made_by_a_job_is_a_download_that_runs_nothing(api: Any) -> None:
    job_id = await job_with_artifacts(api, **{"report.html": b"<script>alert(1)</script>"})
    answer = await api.http.get(f"/v1/jobs/{job_id}/artifacts/report.html")
    assert answer.content == b"<script>alert(1)</script>"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert "sandbox; default-src 'none'" in answer.headers.get_list("content-security-policy")
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_what_is_no_artifact_cannot_be_had(api: Any) -> None:
    job_id = await job_with_artifacts(api, **{"a.txt": b"a"})
    for name in (
        "nothing.txt",
        "..%2F..%2Fheadway.db",
        "%2Fetc%2Fpasswd",
        ".a",
        "a%00b",
        "x" * 999,
    ):
        answer = await api.http.get(f"/v1/jobs/{job_id}/artifacts/{name}")
        assert answer.status_code == 404, name


async def test_a_file_that_the_store_does_not_know_does_not_exist(api: Any) -> None:
    """J5: an attempt that lost its lease may still write files; only the store can refuse them."""
    job_id = await job_with_artifacts(api, **{"a.txt": b"a"})
    leave_files(api.state_dir.job_artifacts(job_id) / "1", {"stale.txt": b"stale"})
    listed = (await api.http.get(f"/v1/jobs/{job_id}/artifacts")).json()["artifacts"]
    assert [each["name"] for each in listed] == ["a.txt"]
    answer = await api.http.get(f"/v1/jobs/{job_id}/artifacts/stale.txt")
    assert answer.status_code == 404


async def test_a_link_out_of_the_artifacts_is_not_followed(api: Any) -> None:
    """A job could otherwise hand the server's own files to whoever may read its artifacts."""
    job_id = await api.submit(input={"model": "x"})
    claimed = await api.claim()
    directory = api.state_dir.job_artifacts(job_id) / "1"
    leave_files(directory, {"a.txt": b"a"})
    os.symlink(api.state_dir.database, directory / "stolen.db")
    os.symlink(api.state_dir.root, directory / "stolen")
    for each in ("a.txt", "stolen.db", "stolen/headway.db", "../../../headway.db"):
        await record(api, claimed, each)
    for name in ("stolen.db", "stolen/headway.db"):
        answer = await api.http.get(f"/v1/jobs/{job_id}/artifacts/{name}")
        assert answer.status_code == 404, name
    listed = (await api.http.get(f"/v1/jobs/{job_id}/artifacts")).json()["artifacts"]
    assert [each["name"] for each in listed] == ["a.txt"]


@pytest.mark.parametrize(
    "media_type",
    ["text/html", "text/javascript", "application/ecmascript; charset=utf-8", "image/svg+xml",
     "text/css", "application/xhtml+xml", "application/wasm", "Text/JavaScript", "x", "a/b\r\nc: d",
     "multipart/x-mixed-replace", "text/plain; x=y"],
)  # fmt: skip
def test_no_file_of_a_job_is_a_script_or_a_style_to_a_browser(media_type: str) -> None:
    """The pages' policy lets this server's own files run, so a job's must be none of them."""
    assert harmless_type(media_type) == "application/octet-stream"


def test_other_types_are_kept() -> None:
    for media_type in ("text/plain", "text/csv; charset=utf-8", "application/json", "image/png"):
        assert harmless_type(media_type) == media_type
