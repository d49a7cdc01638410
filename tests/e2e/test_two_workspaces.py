"""Two workspaces, three roles, one server: API and browser, every cross-access refused (J11).

The route table (`tests/unit/api/test_access_table.py`) has every route; this is the whole of it put
together: `headway admin`, tokens, a real worker, streams, pages.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from browser import CHROMIUM, DRIVER, MISSING, Browser, chromium

from headway.client import Client, Denied, InvalidRequest, NotFound, admin
from headway.client.account_models import NewServiceToken, NewToken

OPERATIONS = Path(__file__).with_name("access_ops.py")
SECRET = "the-secret-of-infer"
PATIENCE_S = 60


@dataclass
class Town:
    """A server with the workspaces `infer` and `shop`, and a token of each of its people."""

    server: Any
    tokens: dict[str, str]
    job_id: str

    def client(self, who: str, workspace: str | None = None) -> Client:
        return Client(self.server.url, token=self.tokens[who], workspace=workspace)

    def http(self, who: str | None) -> httpx.Client:
        headers = {} if who is None else {"authorization": f"Bearer {self.tokens[who]}"}
        return httpx.Client(base_url=self.server.url, headers=headers, verify=False, timeout=60)


def bootstrap(state_dir: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headway.cli.main", "admin", "bootstrap"]
    return subprocess.run(
        [*command, "--state-dir", str(state_dir), *flags],
        text=True, capture_output=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def town(start_module_server: Any) -> Town:
    server = start_module_server("--no-bench", operations=OPERATIONS)
    root = bootstrap(server.state_dir, "--user", "root")
    assert root.returncode == 0, root.stderr
    tokens = {"root": root.stdout.strip()}
    with Client(server.url, token=tokens["root"]) as client:
        for workspace in ("infer", "shop"):
            client.perform(admin.add_workspace(workspace))
            for role in ("viewer", "user", "admin"):
                name = f"{role}-of-{workspace}"
                client.perform(admin.add_user(name))
                client.perform(admin.set_member(workspace, name, role))
                issued = client.perform(admin.issue_token(NewToken(label="test", user=name)))
                tokens[name] = issued.token
        new = NewServiceToken(label="ci")
        tokens["ci"] = client.perform(admin.issue_service_token("infer", new)).token
        metrics = NewToken(label="prometheus", metrics=True)
        tokens["prometheus"] = client.perform(admin.issue_token(metrics)).token
    town = Town(server, tokens, "")
    with town.client("user-of-infer") as client:
        job = client.submit("tell", {"text": SECRET})
        assert client.wait(job.id, timeout_s=PATIENCE_S).is_ended
        town.job_id = job.id
    return town


STRANGERS = ("viewer-of-shop", "user-of-shop", "admin-of-shop")


def test_members_see_their_job_and_what_it_said(town: Town) -> None:
    for who in ("viewer-of-infer", "user-of-infer", "admin-of-infer", "ci"):
        with town.client(who) as client:
            assert client.get(town.job_id).created_by == "user-of-infer"
            assert SECRET in "".join(client.logs(town.job_id))
            assert client.result(town.job_id) == SECRET
            assert client.artifact(town.job_id, "said.txt") == SECRET.encode()
            mine = client.list(created_by="user-of-infer").jobs
            assert [job.id for job in mine] == [town.job_id]
    with town.client("root", "infer") as client:
        assert client.get(town.job_id).workspace == "infer"


@pytest.mark.parametrize("who", STRANGERS)
def test_others_find_nothing_of_it_whatever_they_try(town: Town, who: str) -> None:
    with town.client(who) as client:
        calls: list[Callable[[], Any]] = [
            lambda: client.get(town.job_id),
            lambda: client.wait(town.job_id, timeout_s=1),
            lambda: client.result(town.job_id, timeout_s=1),
            lambda: client.events(town.job_id),
            lambda: client.why(town.job_id),
            lambda: list(client.logs(town.job_id)),
            lambda: list(client.follow(town.job_id)),
            lambda: client.artifacts(town.job_id),
            lambda: client.artifact(town.job_id, "x"),
        ]
        for call in calls:
            with pytest.raises(NotFound, match="there is no job"):
                call()
        for change in (client.cancel, client.retry):
            with pytest.raises(Denied if "viewer" in who else NotFound):
                change(town.job_id)
        assert town.job_id not in {job.id for job in client.list(limit=1000).jobs}
        assert client.list(created_by="user-of-infer").jobs == []
    with town.client(who, "infer") as client, pytest.raises(NotFound, match="no workspace infer"):
        client.list()


def test_viewers_change_nothing_and_users_manage_nothing(town: Town) -> None:
    with town.client("viewer-of-infer") as client:
        for call in (
            lambda: client.submit("tell", {"text": "x"}),
            lambda: client.cancel(town.job_id),
            lambda: client.retry(town.job_id),
        ):
            with pytest.raises(Denied, match="viewer-of-infer is viewer"):
                call()
    for who in ("viewer-of-infer", "user-of-infer", "ci"):
        with town.client(who) as client:
            for ask in (
                admin.set_member("infer", "user-of-shop", "admin"),
                admin.remove_member("infer", "admin-of-infer"),
                admin.service_tokens("infer"),
                admin.issue_service_token("infer", NewServiceToken(label="more")),
            ):
                with pytest.raises(Denied):
                    client.perform(ask)
    for who in ("admin-of-infer", "ci", "prometheus"):
        with town.client(who) as client:
            for server_wide in (admin.users(), admin.add_user("x"), admin.audit(),
                                admin.add_workspace("x"), admin.tokens(everybody=True),
                                admin.set_administrator(who, True)):  # fmt: skip
                with pytest.raises((Denied, InvalidRequest)):
                    client.perform(server_wide)


def test_an_admin_of_one_workspace_is_nobody_in_another(town: Town) -> None:
    with town.client("admin-of-shop") as client:
        for ask in (
            admin.members("infer"),
            admin.set_member("infer", "admin-of-shop", "admin"),
            admin.service_tokens("infer"),
            admin.remove_workspace("infer"),
        ):
            with pytest.raises((NotFound, Denied)):
                client.perform(ask)
        with pytest.raises(NotFound):
            client.perform(admin.revoke_token(town.tokens["admin-of-infer"].split("_")[1]))


def test_a_token_makes_none_that_can_do_more_or_lives_longer(town: Town) -> None:
    with town.client("user-of-infer") as client:
        with pytest.raises(Denied, match="others' tokens"):
            client.perform(admin.issue_token(NewToken(label="x", user="root")))
        with pytest.raises(Denied):
            client.perform(admin.issue_token(NewToken(label="x", metrics=True)))
        short = client.perform(admin.issue_token(NewToken(label="short", expires_in_s=3600)))
        modest = client.perform(admin.issue_token(NewToken(label="modest", role="viewer")))
    with Client(town.server.url, token=short.token) as client:
        child = client.perform(admin.issue_token(NewToken(label="child")))
        assert child.about.expires_at == short.about.expires_at
    with Client(town.server.url, token=modest.token) as client:
        with pytest.raises(Denied, match="a limited token"):
            client.perform(admin.issue_token(NewToken(label="x")))
        with pytest.raises(Denied, match="is viewer"):
            client.submit("tell", {"text": "x"})


def test_the_metrics_of_all_are_for_administrators_and_scrapers(town: Town) -> None:
    statuses = {}
    for who in (None, "admin-of-infer", "ci", "prometheus", "root"):
        with town.http(who) as http:
            statuses[who] = http.get("/metrics").status_code
    assert statuses == {None: 401, "admin-of-infer": 403, "ci": 403, "prometheus": 200, "root": 200}
    with town.http(None) as http:
        assert http.get("/healthz").status_code == http.get("/readyz").status_code == 200


def test_a_revocation_ends_an_open_stream_and_the_job_of_who_left_fails(town: Town) -> None:
    with town.client("root") as root:
        root.perform(admin.add_user("leaver"))
        root.perform(admin.set_member("infer", "leaver", "user"))
        token = root.perform(admin.issue_token(NewToken(label="x", user="leaver"))).token
        leaver = Client(town.server.url, token=token)
        later = leaver.submit("tell", {"text": "x"}, options=_in_a_while())
        opened = threading.Event()

        def follow() -> None:
            with httpx.stream(
                "GET", f"{town.server.url}/v1/jobs/stream", timeout=PATIENCE_S,
                headers={"authorization": f"Bearer {token}"},
            ) as answer:  # fmt: skip
                for _ in answer.iter_raw():
                    opened.set()

        stream = threading.Thread(target=follow, daemon=True)
        stream.start()
        assert opened.wait(PATIENCE_S)
        root.perform(admin.remove_user("leaver"))
        stream.join(PATIENCE_S)
        assert not stream.is_alive()
        with pytest.raises(Denied, match="was revoked"):
            leaver.list()
        leaver.close()
    with town.client("root", "infer") as root:
        ended = root.wait(later.id, timeout_s=PATIENCE_S)
        assert ended.error is not None
        assert ended.error.message == "leaver is no member of 'infer' any more"


def _in_a_while() -> Any:
    from datetime import UTC, timedelta

    from headway.client import SubmitOptions
    from headway.core.clock import SystemClock

    return SubmitOptions(not_before=SystemClock().now().astimezone(UTC) + timedelta(seconds=3))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None or DRIVER is None:
        pytest.skip(MISSING)
    with chromium(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


def sign_in(browser: Browser, town: Town, who: str) -> None:
    browser.driver.delete_all_cookies()
    browser.driver.get(f"{town.server.url}/jobs")
    browser.until(lambda: browser.count("#token") == 1)  # led there, not let in
    browser.type("#token", town.tokens[who])
    browser.click("form button")
    browser.until(lambda: browser.driver.current_url.endswith("/jobs"))
    browser.until(lambda: browser.count("#main") == 1)


@pytest.mark.parametrize("who", ["viewer-of-infer", "admin-of-infer"])
def test_pages_show_members_what_is_theirs(town: Town, browser: Browser, who: str) -> None:
    sign_in(browser, town, who)
    assert town.job_id in browser.driver.page_source
    browser.open(f"{town.server.url}/jobs/{town.job_id}")
    browser.until(lambda: SECRET in browser.find("body").text)


@pytest.mark.parametrize("who", STRANGERS)
def test_pages_show_others_nothing_of_it(town: Town, browser: Browser, who: str) -> None:
    sign_in(browser, town, who)
    for address in ("/jobs", "/jobs?q=", f"/jobs?q={town.job_id}", f"/jobs/{town.job_id}",
                    "/jobs?workspace=infer", f"/jobs/{town.job_id}?workspace=infer"):  # fmt: skip
        browser.driver.get(town.server.url + address)
        browser.until(lambda: browser.run("return document.readyState") == "complete")
        assert SECRET not in browser.driver.page_source
        assert f'href="/jobs/{town.job_id}' not in browser.driver.page_source
        assert "user-of-infer" not in browser.driver.page_source
    script = """
        const done = arguments[arguments.length - 1];
        fetch(arguments[0]).then(answer => done(answer.status), error => done(String(error)));
    """
    for path in (f"/v1/jobs/{town.job_id}", f"/v1/jobs/{town.job_id}/logs/stream"):
        assert browser.driver.execute_async_script(script, path) == 404


def test_the_audit_log_tells_it_all_and_no_token(town: Town) -> None:
    with town.client("viewer-of-infer") as client, pytest.raises(Denied):
        client.cancel(town.job_id)
    with town.client("admin-of-shop") as client, pytest.raises(NotFound):
        client.get(town.job_id)
    with town.client("root") as client:
        page = client.perform(admin.audit(limit=1000))
    seen = {(line.user, line.action) for line in page.lines}
    assert {("root", "workspace.add"), ("root", "member.set"), ("root", "token.add")} <= seen
    assert ("viewer-of-infer", "denied") in seen
    foreign = [line for line in page.lines if "another workspace" in line.subject]
    assert foreign
    assert {line.user for line in foreign} <= set(STRANGERS)
    text = page.model_dump_json() + town.server.log_path.read_text()
    assert not re.search(r"hw_[0-9a-z]{12}_", text)
    for token in town.tokens.values():
        assert token.split("_")[2] not in text


def test_who_guesses_is_slowed_down(town: Town) -> None:
    """Last: this host has to wait afterwards."""
    with town.http(None) as http:
        answers = [
            http.get("/v1/me", headers={"authorization": f"Bearer hw_{number}"})
            for number in range(14)
        ]
    assert {answer.status_code for answer in answers} == {401, 429}
    assert int(answers[-1].headers["retry-after"]) >= 1
    with town.client("user-of-infer") as client:
        assert client.get(town.job_id).is_ended  # known, so not held up


def test_a_second_bootstrap_is_refused_unless_to_recover(town: Town) -> None:
    refused = bootstrap(town.server.state_dir)
    assert refused.returncode == 2
    assert "there is an administrator already (root), who can make tokens" in refused.stderr
    recovered = bootstrap(town.server.state_dir, "--recover", "--user", "rescuer")
    assert recovered.returncode == 0
    with httpx.Client(base_url=town.server.url, verify=False, timeout=60) as http:
        answer = http.get("/v1/me", headers={"authorization": f"Bearer {recovered.stdout.strip()}"})
    assert answer.status_code in {200, 429}


def test_beyond_loopback_nobody_is_served_without_an_administrator(tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "headway.cli.main", "serve", "--host", "0.0.0.0", "--port", "0",
        "--no-bench", "--operations", str(OPERATIONS),
        "--state-dir", str(tmp_path / "state"),
    ]  # fmt: skip
    refused = subprocess.run(
        command, text=True, capture_output=True, timeout=PATIENCE_S, check=False
    )
    assert refused.returncode == 2
    assert "will not listen on 0.0.0.0" in refused.stderr
    assert "headway admin bootstrap --state-dir" in refused.stderr
