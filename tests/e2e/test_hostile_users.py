"""Members who try to get at what is not theirs, or to spoil it for others; on a real server."""

from __future__ import annotations

import json
import select
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from job_servers import JobServer, StartServer
from people import people

from headway.access.roles import Role

MEMBERS = {
    "ada": {"blue": Role.ADMIN},
    "ben": {"blue": Role.USER},
    "eve": {"red": Role.ADMIN},
    "mal": {"red": Role.USER},
}
WAIT_S = 60.0
OPERATIONS = Path(__file__).with_name("hostile_user_ops.py")


@dataclass
class Person:
    """Somebody with a token."""

    server: JobServer
    token: str

    def __post_init__(self) -> None:
        headers = {"authorization": f"Bearer {self.token}"}
        self.http = httpx.Client(base_url=self.server.url, timeout=WAIT_S, headers=headers)
        self._made: list[Person] = []

    @property
    def token_id(self) -> str:
        return self.token.split("_")[1]

    def post(self, path: str, body: str | bytes) -> httpx.Response:
        """Send a body as it is, JSON or not."""
        return self.http.post(path, content=body, headers={"content-type": "application/json"})

    def submit(self, operation: str, **options: Any) -> httpx.Response:
        return self.http.post(f"/v1/operations/{operation}", json={"input": {}, **options})

    def issue(self, **wishes: Any) -> Person:
        answer = self.http.post("/v1/tokens", json=wishes)
        assert answer.status_code == 201, answer.text
        self._made.append(Person(self.server, answer.json()["token"]))
        return self._made[-1]

    def close(self) -> None:
        self.http.close()
        for person in self._made:
            person.close()

    def is_let_in(self) -> bool:
        return self.http.get("/v1/me").status_code == 200


@pytest.fixture(scope="module")
def crowd(
    start_module_server: StartServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Person]]:
    directory = tmp_path_factory.mktemp("hostile") / "state"
    tokens = people(directory, MEMBERS)
    server = start_module_server("--state-dir", str(directory), operations=OPERATIONS)
    crowd = {name: Person(server, token) for name, token in tokens.items()}
    yield crowd
    for person in crowd.values():
        person.close()


# --- what a submission may hold ---


@pytest.mark.parametrize(
    "moment", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59Z"]
)
def test_a_time_at_the_end_of_the_calendar_is_taken_or_refused(
    crowd: dict[str, Person], moment: str
) -> None:
    answer = crowd["ben"].submit("echo", not_before=moment)
    assert answer.status_code in (202, 422), answer.text


@pytest.mark.parametrize("value", [r'"\ud800"', "NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize("where", ["input", "config", "arguments"])
def test_a_batch_refuses_what_json_cannot_carry(
    crowd: dict[str, Person], value: str, where: str
) -> None:
    """NaN became null on its way, and half a character an internal error."""
    field = {
        "input": f'"input": {{"data": [{value}]}}',
        "config": f'"config": {{"x": {value}}}',
        "arguments": f'"preconditions": [{{"name": "nobody", "arguments": {{"x": {value}}}}}]',
    }[where]
    answer = crowd["ben"].post("/v1/jobs:batch", f'{{"jobs": [{{"operation": "carry", {field}}}]}}')
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"], answer.text


# --- positions ---


@pytest.mark.parametrize("number", ["\N{SUPERSCRIPT TWO}", "9" * 40, "-1", ""])
def test_a_forged_position_in_the_feed_begins_it_anew(
    crowd: dict[str, Person], number: str
) -> None:
    ben = crowd["ben"].http
    with ben.stream("GET", "/v1/jobs/stream") as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: reset"
        life = next(lines).removeprefix("id: ").partition(":")[0]
        forged = [(b"last-event-id", f"{life}:{number}".encode("latin-1"))]
        with ben.stream("GET", "/v1/jobs/stream", headers=forged) as again:
            assert next(again.iter_lines()) == "event: reset"


# --- tokens ---


def test_a_limited_token_revokes_itself_and_nothing_else(crowd: dict[str, Person]) -> None:
    """Somebody who got hold of the token of a dashboard would shut its owner out."""
    ben = crowd["ben"]
    other = ben.issue(label="other")
    for limits in ({"role": "viewer"}, {"workspace": "blue"}):
        limited = ben.issue(label="limited", **limits)
        for victim in (other, ben):
            answer = limited.http.delete(f"/v1/tokens/{victim.token_id}")
            assert answer.status_code == 403, answer.text
            assert victim.is_let_in()
        assert limited.http.delete(f"/v1/tokens/{limited.token_id}").status_code == 204
        assert not limited.is_let_in()
    assert ben.http.delete(f"/v1/tokens/{other.token_id}").status_code == 204
    assert not other.is_let_in()


# --- the audit log ---


def test_who_asks_for_anothers_job_is_noted_with_its_address(crowd: dict[str, Person]) -> None:
    job_id = crowd["ben"].submit("echo").json()["id"]
    assert crowd["eve"].http.get(f"/v1/jobs/{job_id}").status_code == 404
    lines = crowd["root"].http.get("/v1/audit", params={"action": "denied"}).json()["lines"]
    noted = [line for line in lines if line["subject"] == "job of another workspace"]
    assert [(line["user"], line["address"], line["token_id"]) for line in noted] == [
        ("eve", "127.0.0.1", crowd["eve"].token_id)
    ]


# --- targets ---


class Target(ThreadingHTTPServer):
    """A target that tells when it was asked."""

    def __init__(self) -> None:
        self.was_asked = threading.Semaphore(0)
        self.status = 200
        super().__init__(("127.0.0.1", 0), _Answers)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Answers(BaseHTTPRequestHandler):
    server: Target

    def do_GET(self) -> None:
        self.server.was_asked.release()
        self.send_response(self.server.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def target() -> Iterator[Target]:
    target = Target()
    yield target
    target.shutdown()
    target.server_close()


def register(crowd: dict[str, Person], name: str, target: Target, *workspaces: str) -> None:
    body = {"url": target.url, "workspaces": workspaces, "lock_group": f"group-of-{name}"}
    answer = crowd["root"].http.put(f"/v1/targets/{name}", json=body)
    assert answer.status_code == 200, answer.text


def test_nobody_holds_the_lock_of_a_target_that_is_not_its_own(
    crowd: dict[str, Person], target: Target
) -> None:
    """A job that sleeps under the key of a target kept everybody else from measuring it."""
    register(crowd, "gpu-lock", target, "blue")
    key = "target group-of-gpu-lock"
    refused = crowd["mal"].submit("sleep", concurrency_key=key)
    assert refused.status_code == 422, refused.text
    [problem] = refused.json()["errors"]
    assert problem["path"] == "concurrency_key"
    no_target = crowd["mal"].submit("sleep", concurrency_key="target of-nobody")
    assert no_target.status_code == 422
    [same] = no_target.json()["errors"]
    assert same == problem, "the answer tells which lock groups there are"
    batch = json.dumps({"jobs": [{"operation": "sleep", "concurrency_key": key}]})
    assert crowd["mal"].post("/v1/jobs:batch", batch).status_code == 422
    own = crowd["ben"].submit("echo", concurrency_key=key)
    assert own.status_code == 202, own.text


def test_a_target_that_is_taken_away_is_not_asked_for_its_health_any_more(
    crowd: dict[str, Person], target: Target
) -> None:
    """A job that waited went on asking, and said how another workspace's target is."""
    target.status = 503
    register(crowd, "gpu-health", target, "red", "blue")
    arguments = {"target": "gpu-health", "interval_s": 0.1}
    healthy = [{"name": "target_healthy", "arguments": arguments}]
    mal = crowd["mal"]
    answer = mal.submit("echo", preconditions=healthy)
    assert answer.status_code == 202, answer.text
    target.was_asked.acquire(timeout=WAIT_S)
    register(crowd, "gpu-health", target, "blue")
    result = mal.http.get(f"/v1/jobs/{answer.json()['id']}/result?wait={WAIT_S:.0f}s").json()
    assert result["job"]["state"] == "FAILED"
    assert "no registered target" in result["job"]["error"]["message"]


# --- the place of others ---


def test_one_members_bodies_leave_room_for_the_others(crowd: dict[str, Person]) -> None:
    """Requests whose last byte does not come hold what they brought."""
    mal, size = crowd["mal"], 8 * 1024 * 1024
    head = (
        f"POST /v1/operations/echo HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {mal.token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {size}\r\n\r\n"
    )
    held: list[socket.socket] = []
    try:
        for _ in range(8):
            held.append(socket.create_connection(("127.0.0.1", mal.server.port), timeout=WAIT_S))
            held[-1].sendall(head.encode() + b" " * (size - 1))
        assert crowd["ben"].submit("echo").status_code == 202
        held.append(socket.create_connection(("127.0.0.1", mal.server.port), timeout=WAIT_S))
        held[-1].sendall(head.encode() + b" " * (size - 1))
        # Whichever of them is read last is one too many.
        refused, _, _ = select.select(held, [], [], WAIT_S)
        assert [each.recv(12) for each in refused] == [b"HTTP/1.1 429"]
        assert crowd["ben"].submit("echo").status_code == 202
    finally:
        for each in held:
            each.close()
