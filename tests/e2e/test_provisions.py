"""A shared server: secrets that leak nowhere, targets that nothing gets around (J10, N5)."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from job_servers import JobServer, StartServer
from people import people

from headway.access.roles import Role
from headway.core.clock import monotonic_ns, ns_from_s

MEMBERS = {
    "ada": {"blue": Role.ADMIN},
    "ben": {"blue": Role.USER},
    "vic": {"blue": Role.VIEWER},
    "eve": {"red": Role.ADMIN},
}
WAIT_S = 60.0
OPERATIONS = Path(__file__).with_name("provisions_ops.py")
SECRETS = {
    "app-key": "hunt-app-4f1c9a7e2b",
    "api-key": "hunt-api-8d3e6b5a1c",
    "team": "hunt-team-7a2f4c9e8d",
    "basic": "Basic aHVudC11c2VyOmh1bnQtcGFzc3dvcmQtM2I3ZQ==",
}
LOAD = {"kind": "constant", "rate": [20], "cap": 4}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("provisions") / "state"


@pytest.fixture(scope="module")
def tokens(directory: Path) -> dict[str, str]:
    return people(directory, MEMBERS)


@pytest.fixture(scope="module")
def server(start_module_server: StartServer, directory: Path, tokens: dict[str, str]) -> JobServer:
    return start_module_server("--state-dir", str(directory), operations=OPERATIONS)


class Person:
    """Somebody with a token, in a workspace."""

    def __init__(self, server: JobServer, token: str, workspace: str) -> None:
        headers = {"authorization": f"Bearer {token}", "headway-workspace": workspace}
        self.http = httpx.Client(base_url=server.url, timeout=WAIT_S, headers=headers)

    def submit(self, operation: str, given: Any = None, **options: Any) -> str:
        answer = self.post(operation, given, **options)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def post(self, operation: str, given: Any = None, **options: Any) -> httpx.Response:
        body = {"input": given or {}, **options}
        return self.http.post(f"/v1/operations/{operation}", json=body)

    def job(self, job_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.http.get(f"/v1/jobs/{job_id}").json()
        return found

    def gate(self) -> Gate:
        return Gate(self, self.submit("hold", {}, secrets={"APP_KEY": "app-key"}))

    def ended(self, job_id: str) -> dict[str, Any]:
        return until(lambda: self._ended(job_id))

    def _ended(self, job_id: str) -> dict[str, Any] | None:
        job = self.job(job_id)
        return job if job["ended_at"] else None


@dataclass
class Gate:
    """Lets jobs wait until the test goes on: they wait for another one to end."""

    person: Person
    holder: str

    @property
    def shut(self) -> list[dict[str, Any]]:
        return [{"name": "job_ended", "arguments": {"job": self.holder}}]

    def open(self) -> None:
        self.person.http.post(f"/v1/jobs/{self.holder}/cancel")


@pytest.fixture(scope="module")
def persons(server: JobServer, tokens: dict[str, str]) -> Iterator[dict[str, Person]]:
    workspaces = {"eve": "red"}
    made = {
        name: Person(server, token, workspaces.get(name, "blue")) for name, token in tokens.items()
    }
    yield made
    for person in made.values():
        person.http.close()


@pytest.fixture(scope="module")
def provided(persons: dict[str, Person], echoing: Echoing) -> dict[str, Person]:
    """The secrets are set, the target is registered."""
    for name, value in SECRETS.items():
        answer = persons["ada"].http.put(f"/v1/secrets/{name}", json={"value": value})
        assert answer.status_code == 200
        assert value not in answer.text
    target = {
        "url": echoing.url, "workspaces": ["blue"], "max_rate_per_s": 50, "max_streams": 8,
        "lock_group": "node-1", "secret": "api-key",
    }  # fmt: skip
    answer = persons["root"].http.put("/v1/targets/echo", json=target)
    assert answer.status_code == 200, answer.text
    assert answer.json()["reach"] == "loopback"
    return persons


def until(condition: Callable[[], Any]) -> Any:
    deadline_ns = monotonic_ns() + ns_from_s(WAIT_S)
    while not (value := condition()):
        assert monotonic_ns() < deadline_ns
        time.sleep(0.05)
    return value


class Echoing:
    """A target that repeats every credential, and redirects to where it may not be followed."""

    def __init__(self) -> None:
        self.followed: list[str] = []
        self.seen: list[dict[str, str]] = []
        echoing = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                echoing.seen.append(dict(self.headers))
                if self.path.startswith("/trap"):
                    echoing.followed.append(self.path)
                if self.path.endswith("/models"):
                    self.reply(200, json.dumps({"data": [{"id": "m"}]}))
                else:
                    self.reply(200, "{}")

            def do_POST(self) -> None:
                echoing.seen.append(dict(self.headers))
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                if b"redirect" in body:
                    self.reply(307, "", ("Location", f"{echoing.url}/trap"))
                    return
                known = {
                    n: self.headers[n] for n in ("Authorization", "X-Team") if n in self.headers
                }
                self.reply(401, json.dumps({"error": {"message": f"refused: {known}"}}))

            def reply(self, status: int, text: str, *headers: tuple[str, str]) -> None:
                data = text.encode()
                self.send_response(status)
                for name, value in (*headers, ("Content-Length", str(len(data)))):
                    self.send_header(name, value)
                self.send_header("X-Echo", self.headers.get("Authorization", ""))
                self.end_headers()
                self.wfile.write(data)

            def version_string(self) -> str:
                return f"echo/{self.headers.get('Authorization', '-')}"

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture(scope="module")
def echoing() -> Iterator[Echoing]:
    target = Echoing()
    yield target
    target.server.shutdown()
    target.server.server_close()


def bench(url: str = "echo", profile: dict[str, Any] = LOAD, **rest: Any) -> dict[str, Any]:
    target = {"url": url, **rest.pop("target", {})}
    return {
        "target": target, "profile": profile, "limits": {"max_seconds": 0.5}, "calibrate": False,
        "inputs": {"kind": "synthetic", "prompt_tokens": {"kind": "constant", "value": 8},
                   "output_tokens": {"kind": "constant", "value": 2}}, **rest,
    }  # fmt: skip


# --- who may ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "method", "path", "status"),
    [
        ("vic", "GET", "/v1/secrets", 200),
        ("ben", "PUT", "/v1/secrets/x", 403),
        ("ben", "DELETE", "/v1/secrets/app-key", 403),
        ("eve", "DELETE", "/v1/secrets/app-key", 404),
        ("ada", "POST", "/v1/secrets:rotate", 403),
        ("ada", "PUT", "/v1/targets/mine", 403),
        ("ada", "DELETE", "/v1/targets/echo", 403),
        ("vic", "GET", "/v1/workspaces/blue/overlay", 200),
        ("ben", "PUT", "/v1/workspaces/blue/overlay", 403),
        ("eve", "GET", "/v1/workspaces/blue/overlay", 404),
        ("eve", "PUT", "/v1/workspaces/blue/overlay", 404),
    ],
)
def test_who_may_do_what_with_provisions(
    provided: dict[str, Person], name: str, method: str, path: str, status: int
) -> None:
    body = {"value": "long enough"} if path.startswith("/v1/secrets/") else {}
    if path.startswith("/v1/targets"):
        body = {"url": "http://127.0.0.1:1", "workspaces": ["blue"]}
    content = {} if method in ("GET", "DELETE") else {"json": body}
    answer = provided[name].http.request(method, path, **content)
    assert answer.status_code == status, answer.text


def test_another_workspace_has_neither_the_secrets_nor_the_target(
    provided: dict[str, Person], echoing: Echoing
) -> None:
    eve = provided["eve"]
    assert eve.http.get("/v1/secrets").json() == {"secrets": []}
    assert eve.http.get("/v1/targets").json() == {"targets": []}
    refused = eve.post("peek", secrets={"APP_KEY": "app-key"})
    assert (refused.status_code, "no secret app-key" in refused.text) == (422, True)
    for url in ("echo", echoing.url):
        refused = eve.post("bench", bench(url))
        assert refused.status_code == 422
        assert "registered: none yet" in refused.text


# --- targets ----------------------------------------------------------------------------------

TRICKS = [
    bench("http://127.0.0.1:1"),
    bench("http://localhost@127.0.0.1:1"),
    bench("http://169.254.169.254/latest"),
    bench("http://2130706433/"),
    bench("http://[::ffff:127.0.0.1]:1"),
    bench("file:///etc/passwd"),
    bench("unix:///run/x.sock"),
    bench(target={"proxy": "http://127.0.0.1:1"}),
    bench(target={"headers": {"Host": "internal"}}),
    bench(target={"api_key_file": "/etc/passwd"}),
    bench(target={"api_key_env": "HOME"}),
    bench(backend={"kind": "python", "function": "os:system"}),
    bench(inputs={"kind": "file", "path": "/etc/passwd"}),
    bench(profile={"kind": "constant", "rate": [51], "cap": 4}),
    bench(profile={"kind": "constant", "rate": [10], "cap": 9}),
    bench(profile={"kind": "sweep"}),
]


@pytest.mark.parametrize("trick", TRICKS, ids=range(len(TRICKS)))
def test_nothing_but_registered_targets_is_measured(
    provided: dict[str, Person], trick: dict[str, Any]
) -> None:
    refused = provided["ben"].post("bench", trick)
    assert refused.status_code == 422, refused.text


def test_only_the_administrator_says_what_runs_at_a_time(provided: dict[str, Person]) -> None:
    ben = provided["ben"]
    refused = ben.post("bench", bench(), concurrency_key="mine")
    assert refused.status_code == 422
    assert "lock group" in refused.text


def test_a_health_check_asks_registered_targets_only(
    provided: dict[str, Person], echoing: Echoing
) -> None:
    ben = provided["ben"]
    for url in ("http://169.254.169.254/", "http://127.0.0.1:1/"):
        condition = {"name": "target_healthy", "arguments": {"url": url}}
        assert ben.post("peek", preconditions=[condition]).status_code == 422
    condition = {"name": "target_healthy", "arguments": {"url": echoing.url}, "timeout_s": WAIT_S}
    assert ben.ended(ben.submit("peek", preconditions=[condition]))["outcome"] == "succeeded"


def test_a_redirect_is_not_followed(provided: dict[str, Person], echoing: Echoing) -> None:
    spec = bench(backend={"kind": "http", "path": "/x", "body": "redirect {prompt}"})
    provided["ben"].ended(provided["ben"].submit("bench", spec))
    assert any("content-length" in {n.lower() for n in seen} for seen in echoing.seen)
    assert echoing.followed == []


def test_a_ceiling_lowered_and_a_target_removed_meanwhile_stop_what_waits(
    provided: dict[str, Person], echoing: Echoing
) -> None:
    root, ben = provided["root"], provided["ben"]
    late = {"url": echoing.url, "workspaces": ["blue"], "lock_group": "node-1"}

    def register(**changes: Any) -> None:
        answer = root.http.put("/v1/targets/late", json={**late, **changes})
        assert answer.status_code == 200, answer.text

    register(max_streams=8)
    first, second = ben.gate(), ben.gate()
    lowered = ben.submit("bench", bench("late"), preconditions=first.shut)
    removed = ben.submit("bench", bench("late"), preconditions=second.shut)
    register(max_streams=2)
    first.open()
    failed = ben.ended(lowered)
    assert failed["outcome"] == "failed"
    assert "4 streams are asked for, 2 are allowed" in failed["error"]["message"]
    assert root.http.delete("/v1/targets/late").status_code == 204
    second.open()
    failed = ben.ended(removed)
    assert failed["outcome"] == "failed"
    assert "is no registered target" in failed["error"]["message"]
    again = ben.http.post(f"/v1/jobs/{removed}/retry")
    assert (again.status_code, "not a registered target" in again.text) == (422, True)


# --- overlays and secrets ---------------------------------------------------------------------


def test_a_workspaces_overlay_is_under_what_a_job_sets_and_within_the_allow_list(
    provided: dict[str, Person],
) -> None:
    ada, ben = provided["ada"], provided["ben"]
    overlay = "/v1/workspaces/blue/overlay"
    for env in ({"PATH": "/evil"}, {"LD_PRELOAD": "x"}, {"HEADWAY_TOKEN": "x"}, {"OTHER": "x"}):
        assert ada.http.put(overlay, json={"env": env}).status_code == 422
    for config in ({"bench": {"no": 1}}, {"bench": {"target_wait_s": -1}}, {"absent": {}}):
        assert ada.http.put(overlay, json={"config": config}).status_code == 422
    body = {"env": {"APP_TEAM": "blue"}, "config": {"bench": {"target_wait_s": 20}}}
    assert ada.http.put(overlay, json=body).status_code == 200
    assert ben.http.get(overlay).json()["env"] == {"APP_TEAM": "blue"}
    job_id = ben.submit("peek", env={"APP_OWN": "x"})
    ben.ended(job_id)
    assert ben.http.get(f"/v1/jobs/{job_id}/result").json()["result"] == ["APP_OWN", "APP_TEAM"]
    assert ada.http.put(overlay, json={}).status_code == 200


def test_a_secret_removed_meanwhile_fails_the_job_with_the_reason(
    provided: dict[str, Person],
) -> None:
    ada, ben = provided["ada"], provided["ben"]
    ada.http.put("/v1/secrets/gone", json={"value": "soon-removed"})
    gate = ben.gate()
    job_id = ben.submit("peek", secrets={"APP_KEY": "gone"}, preconditions=gate.shut)
    assert ada.http.delete("/v1/secrets/gone").status_code == 204
    gate.open()
    failed = ben.ended(job_id)
    assert failed["error"]["type"] == "SecretMissing"
    assert "no secret 'gone' any more" in failed["error"]["message"]
    refused = ben.post("peek", secrets={"LD_PRELOAD": "app-key"})
    assert refused.status_code == 422


# --- the leak hunt ----------------------------------------------------------------------------


def forms(value: str) -> list[bytes]:
    raw = value.encode()
    return [raw, base64.b64encode(raw).rstrip(b"=")]


def hunted(tokens: dict[str, str]) -> list[bytes]:
    passwords = [base64.b64decode(SECRETS["basic"].split()[1]).decode()]
    values = [*SECRETS.values(), *passwords, SECRETS["basic"].split()[1], *tokens.values()]
    return [form for value in values for form in forms(value)]


def holding(data: bytes, values: list[bytes]) -> list[bytes]:
    return [value for value in values if value in data]


def search_processes(values: list[bytes]) -> None:
    for process in psutil.process_iter():
        for part in ("cmdline", "environ"):
            try:
                data = Path(f"/proc/{process.pid}/{part}").read_bytes()
            except OSError:
                continue
            assert not holding(data, values), (process, part)


def test_secrets_are_found_nowhere(
    server: JobServer,
    provided: dict[str, Person],
    tokens: dict[str, str],
    directory: Path,
    echoing: Echoing,
) -> None:
    """Runs with a retry, a failure that tells the value, a cancel and a load test; then searches
    the store with its log of writes, every file, every answer, and all processes.
    """
    values, ben = hunted(tokens), provided["ben"]
    with_key = {"secrets": {"APP_KEY": "app-key"}}
    holder = ben.submit("hold", **with_key)
    jobs = [
        ben.submit("careless", {"then": "return"}, **with_key),
        ben.submit("careless", {"then": "raise"}, **with_key),
        ben.submit("careless_inline", **with_key),
    ]
    headers = {"X-Team": "secret:team"}
    runs = [
        ben.submit("bench", bench(target={"headers": headers}, capture_text=True)),
        ben.submit("bench", bench(target={"headers": {"Authorization": "secret:basic"}})),
    ]
    until(lambda: "holding" in ben.http.get(f"/v1/jobs/{holder}/logs").text)
    search_processes(values)
    for job_id in (*jobs, *runs):
        ben.ended(job_id)
    ben.http.post(f"/v1/jobs/{holder}/cancel")
    assert ben.ended(holder)["outcome"] == "cancelled"
    given = {header for seen in echoing.seen for header in seen.values()}
    assert {f"Bearer {SECRETS['api-key']}", SECRETS["team"], SECRETS["basic"]} <= given
    peek = ben.submit("peek")
    ben.ended(peek)
    assert ben.http.get(f"/v1/jobs/{peek}/result").json()["result"] == []

    answers = search_answers(provided, [holder, *jobs, *runs, peek], values)
    assert "***" in answers
    search_processes(values)
    files = [path for path in directory.rglob("*") if path.is_file()]
    assert {"headway.db", "headway.db-wal", "run.json", "records.jsonl", "report.html"} <= {
        path.name for path in files
    }
    for path in [*files, server.log_path]:
        found = holding(path.read_bytes(), values)
        assert not found, (path, found)


def search_answers(persons: dict[str, Person], jobs: list[str], values: list[bytes]) -> str:
    """Every way in which the server tells of a job, and its pages; what they said."""
    ben, said = persons["ben"], ""
    paths = [
        "/v1/jobs",
        "/v1/secrets",
        "/v1/targets",
        "/jobs",
        "/targets",
        "/v1/nothing",
        "/runs/new",
    ]
    for job_id in jobs:
        base = f"/v1/jobs/{job_id}"
        parts = ("", "/events", "/result", "/why", "/trace", "/progress", "/logs", "/logs?debug=1")
        paths += [*(base + part for part in parts), f"/jobs/{job_id}"]
        for artifact in ben.http.get(f"{base}/artifacts").json()["artifacts"]:
            paths.append(f"{base}/artifacts/{artifact['name']}")
    for path in paths:
        answer = ben.http.get(path)
        assert not holding(answer.content, values), path
        said += answer.text
    assert not holding(persons["root"].http.get("/metrics").content, values)
    return said
