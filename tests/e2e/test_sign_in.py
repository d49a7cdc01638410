"""J11, N5: browsers sign in, are kept apart, and are signed out, at a real server."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from browser import CHROMIUM, DRIVER, MISSING, chromium
from job_servers import JobServer, StartServer
from people import people, revoke

from headway.access.roles import Role
from headway.core.clock import monotonic_ns, ns_from_s
from headway.dashboard.sign_in_routes import safe_path

MEMBERS = {
    "ada": {"blue": Role.ADMIN, "red": Role.VIEWER},
    "ben": {"blue": Role.USER},
    "eve": {"red": Role.USER},
}
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Where `start_module_server` keeps its state is its own affair; a flag goes over it.
    return tmp_path_factory.mktemp("people") / "state"


@pytest.fixture(scope="module")
def tokens(directory: Path) -> dict[str, str]:
    return people(directory, MEMBERS)


@pytest.fixture(scope="module")
def server(start_module_server: StartServer, directory: Path, tokens: dict[str, str]) -> JobServer:
    return start_module_server("--state-dir", str(directory))


class Visitor:
    """A browser without a window: keeps cookies, sends what browsers send with forms."""

    def __init__(self, server: JobServer) -> None:
        self.url = server.url
        self.http = httpx.Client(
            base_url=server.url, timeout=PATIENCE_S, headers={"accept": "text/html"}
        )

    def post(self, path: str, **fields: str) -> httpx.Response:
        return self.http.post(path, data=fields, headers={"origin": self.url})

    def is_out(self) -> bool:
        return self.http.get("/jobs").status_code == 303

    def sign_in(self, token: str, next_path: str = "/jobs") -> httpx.Response:
        return self.post("/login", token=token, next=next_path)


@pytest.fixture
def visitor(server: JobServer) -> Iterator[Visitor]:
    visitor = Visitor(server)
    yield visitor
    visitor.http.close()


def until(condition: Callable[[], bool]) -> None:
    deadline_ns = monotonic_ns() + ns_from_s(PATIENCE_S)
    while not condition():
        assert monotonic_ns() < deadline_ns


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def submit(server: JobServer, token: str, text: str, workspace: str = "blue") -> str:
    answer = httpx.post(
        f"{server.url}/v1/operations/echo?wait=60s", json={"input": {"text": text}},
        headers={**bearer(token), "headway-workspace": workspace}, timeout=PATIENCE_S,
    )  # fmt: skip
    assert answer.status_code == 200, answer.text
    job_id: str = answer.json()["job"]["id"]
    return job_id


def test_a_stranger_is_led_to_the_form_and_back(
    server: JobServer, visitor: Visitor, tokens: dict[str, str]
) -> None:
    asked = visitor.http.get("/jobs?q=a%26b")
    assert asked.status_code == 303
    assert asked.headers["location"] == "/login?next=%2Fjobs%3Fq%3Da%2526b"
    form = visitor.http.get(asked.headers["location"])
    assert form.status_code == 200
    assert 'value="/jobs?q=a%26b"' in form.text
    done = visitor.sign_in(tokens["ben"], "/jobs?q=a%26b")
    assert (done.status_code, done.headers["location"]) == (303, "/jobs?q=a%26b")
    [cookie] = done.headers.get_list("set-cookie")
    assert re.match(r"headway-\d+=hw_\w+; HttpOnly; Max-Age=\d+; Path=/; SameSite=lax", cookie)
    assert tokens["ben"] not in cookie
    page = visitor.http.get("/jobs")
    assert page.status_code == 200
    assert "ben" in page.text
    # Programs get a problem and a challenge, not a form.
    refused = httpx.get(f"{server.url}/v1/jobs")
    assert refused.status_code == 401
    assert "www-authenticate" in refused.headers


@pytest.mark.parametrize(
    "path",
    ["//evil.example", "https://evil.example", "/\\evil.example", "\\\\evil.example", "jobs",
     "javascript:alert(1)", "/\t/evil.example", "/login?next=/login", "", "/\n/evil.example",
     "/\r\nset-cookie: a=b"],
)  # fmt: skip
def test_signing_in_leads_nowhere_else(path: str) -> None:
    assert safe_path(path) == "/jobs"


def test_a_path_with_a_query_is_kept() -> None:
    for path in ("/jobs/01ab?q=a%26b&state=FAILED", "/compare?a=1&b=2"):
        assert safe_path(path) == path
    parts = urlsplit(safe_path("/jobs/é<script>"))
    assert (parts.netloc, parts.path) == ("", "/jobs/%C3%A9%3Cscript%3E")


def test_a_change_by_cookie_must_come_from_a_page_of_this_server(
    server: JobServer, visitor: Visitor, tokens: dict[str, str]
) -> None:
    """The cookie alone proves nothing: the browser sends it whoever made it send the request."""
    visitor.sign_in(tokens["ben"])
    body = {"input": {"text": "x"}}
    for headers, status in (
        ({}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"origin": server.url}, 202),
        ({"sec-fetch-site": "same-origin"}, 202),
    ):
        answer = visitor.http.post("/v1/operations/echo", json=body, headers=headers)
        assert answer.status_code == status, (headers, answer.text)


def test_a_session_is_good_in_a_cookie_only_and_a_token_never_there(
    server: JobServer, visitor: Visitor, tokens: dict[str, str]
) -> None:
    visitor.sign_in(tokens["ben"])
    [(name, session)] = visitor.http.cookies.items()
    with httpx.Client(base_url=server.url, timeout=60) as http:
        assert http.get("/v1/jobs", headers=bearer(session)).status_code == 401
        cookie = {"cookie": f"{name}={tokens['ben']}"}
        assert http.get("/v1/jobs", headers=cookie).status_code == 401
        both = {"cookie": f"{name}={session}; {name}={session}"}
        assert http.get("/v1/jobs", headers=both).status_code in (200, 401)


def test_signing_out_ends_the_session_and_so_does_revoking_its_token(
    server: JobServer, directory: Path, tokens: dict[str, str]
) -> None:
    for end in ("sign out", "revoke"):
        visitor = Visitor(server)
        with visitor.http:
            visitor.sign_in(tokens["eve"])
            cookies = dict(visitor.http.cookies)
            assert visitor.http.get("/jobs").status_code == 200
            if end == "sign out":
                assert visitor.post("/logout").status_code == 303
            else:
                revoke(directory, tokens["eve"])  # by another process
                until(visitor.is_out)
            assert visitor.http.get("/jobs").status_code == 303
        with httpx.Client(base_url=server.url, cookies=cookies, timeout=60) as thief:
            assert thief.get("/v1/jobs").status_code == 401


def test_a_link_signs_in_once(server: JobServer, visitor: Visitor, tokens: dict[str, str]) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "headway.cli.main", "dashboard", "--no-open"],
        env={**server.environ, "HEADWAY_TOKEN": tokens["ben"]}, text=True, capture_output=True,
        timeout=PATIENCE_S, check=True,
    )  # fmt: skip
    assert told.stdout.startswith(f"{server.url}/login/link/hw_")
    path = told.stdout.strip().removeprefix(server.url)
    for _ in range(3):  # opening it, as scanners of mail do, uses nothing up
        assert "Sign in as ben" in visitor.http.get(path).text
    assert visitor.http.get("/jobs").status_code == 303
    code = path.rpartition("/")[2]
    assert httpx.get(f"{server.url}/v1/jobs", headers=bearer(code)).status_code == 401
    assert visitor.post(path).status_code == 303
    assert visitor.http.get("/jobs").status_code == 200
    assert "/login/link/(token)" in server.log_path.read_text()
    assert code.rpartition("_")[2] not in server.log_path.read_text()
    thief = Visitor(server)
    with thief.http:
        again = thief.post(path)
        assert again.status_code == 404
        assert "used already" in again.text
        assert thief.http.get("/jobs").status_code == 303


def test_workspaces_are_chosen_and_kept_apart(
    server: JobServer, visitor: Visitor, tokens: dict[str, str]
) -> None:
    job_id = submit(server, tokens["ben"], "only in blue")
    visitor.sign_in(tokens["ada"])
    assert job_id in visitor.http.get("/jobs").text  # blue comes first
    assert visitor.post("/workspace", workspace="red", next="/jobs").status_code == 303
    assert job_id not in visitor.http.get("/jobs").text
    assert visitor.http.get(f"/jobs/{job_id}").status_code == 404
    assert visitor.http.get(f"/v1/jobs/{job_id}").status_code == 404
    # A viewer there: neither shown how, nor let.
    page = visitor.http.get("/jobs").text
    assert "/runs/new" not in page
    refused = visitor.http.post(
        "/v1/operations/echo", json={"input": {}}, headers={"origin": server.url}
    )
    assert refused.status_code == 403
    for workspace in ("nowhere", "", "../blue"):
        assert visitor.post("/workspace", workspace=workspace).status_code == 404
    assert visitor.http.get("/jobs?workspace=blue").status_code == 200
    assert visitor.http.get("/v1/jobs?workspace=nowhere").status_code == 404


def test_who_guesses_is_slowed_down_by_the_address_that_a_trusted_proxy_tells(
    start_server: StartServer, tmp_path: Path
) -> None:
    own = people(tmp_path / "own", {"ben": {"blue": Role.USER}})
    server = start_server("--state-dir", str(tmp_path / "own"), "--trusted-proxy", "127.0.0.1")
    visitor = Visitor(server)
    visitor.http.headers.update({"x-forwarded-proto": "https", "x-forwarded-for": "203.0.113.7"})
    visitor.url = visitor.url.replace("http:", "https:")  # what the browser has in its address
    with visitor.http:
        answers = [visitor.sign_in(f"hw_{number}") for number in range(14)]
        assert answers[0].status_code == 401
        assert "no valid access token" in answers[0].text
        assert answers[-1].status_code == 429
        assert int(answers[-1].headers["retry-after"]) > 0
        assert visitor.sign_in(own["ben"]).status_code == 429  # also with a right one, for now
        visitor.http.headers["x-forwarded-for"] = "203.0.113.8"
        done = visitor.sign_in(own["ben"])
        assert done.status_code == 303
        # The browser speaks https to the proxy: only then are there cookies that need it.
        assert re.match(r"__Host-headway-\d+=.*; Secure", done.headers["set-cookie"])
    denials: list[dict[str, Any]] = []

    def are_noted() -> bool:
        answer = httpx.get(f"{server.url}/v1/audit", headers=bearer(own["root"]))
        assert answer.status_code == 200, answer.text
        denials[:] = [line for line in answer.json()["lines"] if line["action"] == "denied"]
        return bool(denials)

    until(are_noted)
    assert {line["address"] for line in denials} == {"203.0.113.7"}
    assert "POST /login" in str(denials)
    assert "hw_" not in str(denials)


def test_what_nobody_told_to_trust_says_is_not_believed(
    visitor: Visitor, tokens: dict[str, str]
) -> None:
    visitor.http.headers.update({"x-forwarded-proto": "https", "x-forwarded-for": "203.0.113.7"})
    done = visitor.sign_in(tokens["ben"])
    assert "Secure" not in done.headers["set-cookie"]
    assert visitor.sign_in("hw_wrong").status_code == 401
    audit = httpx.get(f"{visitor.url}/v1/audit", headers=bearer(tokens["root"])).text
    assert "203.0.113.7" not in audit
    assert "127.0.0.1" in audit


@pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason=MISSING)
def test_a_person_signs_in_looks_around_and_signs_out(
    server: JobServer, tokens: dict[str, str], tmp_path: Path
) -> None:
    job_id = submit(server, tokens["ben"], "seen in a browser")
    with chromium(tmp_path) as browser:
        browser.screen(1280, 800)
        browser.open(f"{server.url}/jobs/{job_id}")
        assert browser.text("h1") == "Sign in to Headway"
        browser.type("#token", tokens["ada"])
        browser.click(".sign-in button")
        browser.until(lambda: browser.text("#summary .state") == "succeeded")
        assert browser.driver.current_url.endswith(f"/jobs/{job_id}")
        assert browser.text(".account .user") == "ada"
        browser.open(f"{server.url}/jobs")
        browser.until(lambda: browser.text("#connection") == "live")
        assert browser.count(f"#row-{job_id}") == 1
        browser.run(
            "const box = document.getElementById('workspace'); box.value = 'red';"
            "box.dispatchEvent(new Event('change', {bubbles: true}))"
        )
        browser.until(lambda: browser.count(f"#row-{job_id}") == 0)
        browser.until(
            lambda: browser.run("return document.getElementById('workspace')?.value") == "red"
        )
        assert browser.count("a[href='/runs/new']") == 0
        assert browser.run("return document.cookie") == ""  # scripts cannot read it
        browser.click(".account button")
        browser.until(lambda: browser.text("h1") == "Sign in to Headway")
        # Its stream ends first, and then it asks whether it is signed out.
        asked = f"{server.url}/v1/me "
        assert [said for said in browser.complaints() if not said.startswith(asked)] == []

        # Signed out elsewhere: the stream is ended, and the page says so by itself.
        browser.type("#token", tokens["ada"])
        browser.click(".sign-in button")
        browser.until(lambda: browser.text("#connection") == "live")
        [cookie] = [
            each for each in browser.driver.get_cookies() if "workspace" not in each["name"]
        ]
        elsewhere = Visitor(server)
        with elsewhere.http:
            elsewhere.http.cookies.set(cookie["name"], cookie["value"], domain="127.0.0.1")
            assert elsewhere.post("/logout").status_code == 303
        browser.until(lambda: browser.text("h1") == "Sign in to Headway")
