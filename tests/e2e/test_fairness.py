"""J25, N12: one workspace floods a real server; nobody else starves, and everybody is told why."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from job_servers import JobServer, StartServer
from people import people

from headway.access.roles import Role

FLOOD = 10_000
BATCH = 1_000
PATIENCE_S = 60.0
CONFIG = """
requests_per_s: 25
submissions_per_min: null
priority_ceilings: {user: 10}
"""
MEMBERS = {
    "flooder": {"flood": Role.USER},
    "colleague": {"flood": Role.USER},
    "quiet": {"quiet": Role.USER},
    "chief": {"quiet": Role.ADMIN},
    "greedy": {"quiet": Role.VIEWER},
}


class Caller:
    """Somebody with a token."""

    def __init__(self, server: JobServer, token: str) -> None:
        self.http = httpx.Client(
            base_url=server.url, timeout=PATIENCE_S, headers={"authorization": f"Bearer {token}"}
        )

    def submit(self, **options: Any) -> str:
        answer = self.http.post("/v1/operations/echo", json=options)
        assert answer.status_code == 202, answer.text
        job_id: str = answer.json()["id"]
        return job_id

    def flood(self, count: int) -> None:
        for _ in range(count // BATCH):
            jobs = [{"operation": "echo"}] * BATCH
            answer = self.http.post("/v1/jobs:batch", json={"jobs": jobs})
            assert answer.status_code == 202, answer.text

    def run(self, job_id: str) -> None:
        answer = self.http.get(f"/v1/jobs/{job_id}/result", params={"wait": f"{PATIENCE_S}s"})
        assert answer.json()["job"]["outcome"] == "succeeded", answer.text

    def why(self, job_id: str) -> dict[str, Any]:
        told: dict[str, Any] = self.http.get(f"/v1/jobs/{job_id}/why").json()
        return told


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fairness")


@pytest.fixture(scope="module")
def callers(start_module_server: StartServer, directory: Path) -> Iterator[dict[str, Caller]]:
    state = directory / "state"
    tokens = people(state, MEMBERS)
    (directory / "serve.yaml").write_text(CONFIG)
    server = start_module_server(
        "--state-dir", str(state), "--config", str(directory / "serve.yaml"),
        "--short", "1+0", "--no-bench",
    )  # fmt: skip
    made = {name: Caller(server, token) for name, token in tokens.items()}
    yield made
    for caller in made.values():
        caller.http.close()


def started_before(directory: Path, job_id: str, user: str) -> int:
    """How many of a user's jobs started between a job's submission and its start."""
    with closing(sqlite3.connect(directory / "state" / "headway.db")) as connection:
        row = connection.execute(
            "SELECT count(*) FROM jobs AS one JOIN jobs AS other ON other.created_by = ?"
            " AND other.started_at_us >= one.created_at_us"
            " AND other.started_at_us <= one.started_at_us WHERE one.id = ?",
            (user, job_id),
        ).fetchone()
    return int(row[0])


def waiting(directory: Path, user: str) -> int:
    with closing(sqlite3.connect(directory / "state" / "headway.db")) as connection:
        row = connection.execute(
            "SELECT count(*) FROM jobs WHERE state = 'PENDING' AND created_by = ?", (user,)
        ).fetchone()
    return int(row[0])


def test_single_jobs_pass_a_flood_of_ten_thousand(
    callers: dict[str, Caller], directory: Path
) -> None:
    """Of a neighbour, and of a colleague: counted in starts, not in seconds.

    With one slot and equal shares, at most one job of the flood is served between the submission
    and the start, and one more whose turn it was already.
    """
    callers["flooder"].flood(FLOOD)
    assert waiting(directory, "flooder") > FLOOD // 4, "the flood was over before the test began"
    for name in ("quiet", "colleague", "quiet", "colleague"):
        job_id = callers[name].submit()
        callers[name].run(job_id)
        assert started_before(directory, job_id, "flooder") <= 2, name
    assert waiting(directory, "flooder") > 0, "nothing was left to pass"


def test_the_flood_is_told_its_place_and_no_neighbours_name(callers: dict[str, Caller]) -> None:
    callers["flooder"].flood(2 * BATCH)
    last = callers["flooder"].submit()
    told = callers["flooder"].why(last)
    assert told["rule"] == "turn"
    assert told["position"] > 1
    assert "flood" not in callers["quiet"].http.get("/v1/limits").text


def test_priorities_have_a_ceiling_by_role(callers: dict[str, Caller]) -> None:
    refused = callers["quiet"].http.post("/v1/operations/echo", json={"priority": 11})
    assert refused.status_code == 403
    assert "priority 11 is above 10, the highest that the role user may ask for" in refused.text
    jobs = [{"operation": "echo"}, {"operation": "echo", "priority": 11}]
    refused = callers["quiet"].http.post("/v1/jobs:batch", json={"jobs": jobs})
    assert refused.status_code == 403
    assert refused.json()["errors"][0]["path"] == "jobs.1.priority"
    callers["quiet"].submit(priority=10)
    callers["chief"].submit(priority=1000)


def test_limits_are_set_by_who_may_and_hold_at_once(callers: dict[str, Caller]) -> None:
    own, others = "/v1/limits/workspaces/quiet", "/v1/limits/workspaces/flood"
    for name, path, status in (
        ("quiet", f"{own}/users/quiet", 403),
        ("greedy", f"{own}/users/quiet", 403),
        ("chief", f"{own}", 403),
        ("chief", f"{others}/users/flooder", 404),
        ("chief", f"{own}/users/quiet", 200),
        ("root", f"{own}", 200),
    ):
        answer = callers[name].http.put(path, json={"max_queued": 0})
        assert answer.status_code == status, (name, path, answer.text)
    refused = callers["quiet"].http.post("/v1/operations/echo", json={})
    assert refused.status_code == 429
    assert "retry-after" in refused.headers
    for path in (own, f"{own}/users/quiet"):
        assert callers["root"].http.put(path, json={"max_running": 0}).status_code == 200
    held = callers["quiet"].submit()
    assert callers["quiet"].why(held)["rule"] == "workspace_limit"
    assert callers["root"].http.put(own, json={}).status_code == 200
    assert callers["quiet"].why(held)["rule"] == "user_limit"
    assert callers["chief"].http.put(f"{own}/users/quiet", json={}).status_code == 200
    callers["quiet"].run(held)


def test_who_asks_too_fast_waits_and_nobody_else_does(callers: dict[str, Caller]) -> None:
    for _ in range(2000):  # far more than the burst; the machine may be slow
        answer = callers["greedy"].http.get("/v1/jobs", params={"limit": "1"})
        if answer.status_code == 429:
            break
    assert answer.status_code == 429
    assert answer.headers["content-type"] == "application/problem+json"
    assert int(answer.headers["retry-after"]) >= 1
    assert "greedy may send 25 requests a second" in answer.json()["detail"]
    assert callers["chief"].http.get("/v1/jobs", params={"limit": "1"}).status_code == 200
