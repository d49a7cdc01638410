"""J11, N5: signing in at a real OpenID provider, which runs as a process of its own."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest
import yaml
from job_servers import JobServer, StartServer
from people import people

from headway.access.roles import Role
from headway.core.clock import monotonic_ns, ns_from_s

pytest.importorskip("joserfc", reason="needs headway[oidc]")
pytest.importorskip("flask", reason="needs oidc-provider-mock")

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    url = f"http://localhost:{port}"
    try:
        deadline_ns = monotonic_ns() + ns_from_s(PATIENCE_S)
        while monotonic_ns() < deadline_ns:
            assert process.poll() is None, "the provider ended"
            with contextlib.suppress(httpx.TransportError):
                httpx.get(f"{url}/.well-known/openid-configuration")
                break
        yield url
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def server(
    start_module_server: StartServer, provider: str, tmp_path_factory: pytest.TempPathFactory
) -> JobServer:
    directory = tmp_path_factory.mktemp("oidc")
    people(directory / "state", {"local-ben": {"blue": Role.USER, "red": Role.USER}})
    oidc = {
        "issuer": provider, "name": "Example SSO", "client_id": "headway",
        "user_claim": "preferred_username", "create_users": True,
        "groups": [
            {"group": "gpu", "workspace": "blue", "role": "user"},
            {"group": "gpu-leads", "workspace": "blue", "role": "admin"},
            {"group": "guests", "workspace": "red", "role": "viewer"},
        ],
    }  # fmt: skip
    secret = directory / "secret"
    secret.write_text("sesame\n")
    oidc["client_secret_file"] = str(secret)
    config = directory / "serve.yaml"
    config.write_text(yaml.safe_dump({"oidc": oidc}))
    return start_module_server("--config", str(config), "--state-dir", str(directory / "state"))


class Person:
    """Somebody with a browser, known to the provider."""

    def __init__(self, server: JobServer, provider: str, name: str, groups: list[str]) -> None:
        self.server, self.provider, self.name = server, provider, name
        self.http = httpx.Client(timeout=PATIENCE_S, headers={"accept": "text/html"})
        self.say(groups)

    def say(self, groups: list[str]) -> None:
        claims = {"preferred_username": self.name, "groups": groups}
        answer = httpx.put(f"{self.provider}/users/{self.name}", json=claims)
        assert answer.status_code == 204, answer.text

    def leave(self, next_path: str = "/jobs") -> str:
        """Go to the provider; its address."""
        left = self.http.get(f"{self.server.url}/login/oidc", params={"next": next_path})
        assert left.status_code == 303, left.text
        return left.headers["location"]

    def agree(self, address: str, action: str = "authorize") -> str:
        """Sign in there; where it sends the browser."""
        agreed = self.http.post(address, data={"sub": self.name, "action": action})
        assert agreed.status_code in (302, 303), agreed.text
        return agreed.headers["location"]

    def sign_in(self, next_path: str = "/jobs") -> httpx.Response:
        return self.http.get(self.agree(self.leave(next_path)))

    def workspaces(self) -> set[str]:
        found = set()
        for workspace in ("blue", "red"):
            answer = self.http.get(
                f"{self.server.url}/v1/jobs", headers={"headway-workspace": workspace}
            )
            if answer.status_code == 200:
                found.add(workspace)
        return found


def test_a_member_of_a_group_signs_in_and_has_its_roles(server: JobServer, provider: str) -> None:
    person = Person(server, provider, "ada", ["gpu"])
    with person.http:
        form = person.http.get(f"{server.url}/login")
        assert "Sign in with Example SSO" in form.text
        done = person.sign_in("/jobs?q=x")
        assert (done.status_code, done.headers["location"]) == (303, "/jobs?q=x")
        page = person.http.get(f"{server.url}/jobs")
        assert page.status_code == 200
        assert "ada" in page.text
        assert person.workspaces() == {"blue"}
        # Whoever changed groups has changed here at the next login, and not lost it all before.
        person.say(["guests"])
        assert person.sign_in().status_code == 303
        assert person.workspaces() == {"red"}


def test_who_is_in_no_group_gets_no_account(server: JobServer, provider: str) -> None:
    person = Person(server, provider, "stranger", ["others"])
    with person.http:
        refused = person.sign_in()
        assert refused.status_code == 403
        assert "no account here" in refused.text
        assert person.http.get(f"{server.url}/jobs").status_code == 303


def test_an_account_that_an_administrator_made_is_not_taken_over(
    server: JobServer, provider: str
) -> None:
    """Else whoever chooses a name at the provider would be whom it belongs to here."""
    for name in ("local-ben", "root"):
        person = Person(server, provider, name, ["gpu-leads"])
        with person.http:
            refused = person.sign_in()
            assert refused.status_code == 403, name
            assert "made by an administrator" in refused.text


def test_an_answer_is_good_once_and_in_the_browser_that_asked(
    server: JobServer, provider: str
) -> None:
    person = Person(server, provider, "eve", ["gpu"])
    with person.http, httpx.Client() as other:
        answer = person.agree(person.leave())
        assert other.get(answer).status_code == 403  # login CSRF: the ticket is not there
        assert person.http.get(answer.replace("state=", "state=x")).status_code == 403
        again = person.agree(person.leave())
        assert person.http.get(again).status_code == 303
        assert person.http.get(again).status_code == 403  # the ticket is used up
        denied = person.agree(person.leave(), "deny")
        refused = person.http.get(denied)
        assert refused.status_code == 403
        assert person.http.get(f"{server.url}/login/oidc/callback").status_code == 403


def test_signing_in_there_leads_nowhere_else(server: JobServer, provider: str) -> None:
    person = Person(server, provider, "mallory", ["gpu"])
    with person.http:
        done = person.sign_in("//evil.example/x")
        assert done.headers["location"] == "/jobs"
