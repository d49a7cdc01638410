"""N5: what users, jobs and targets write is text on every page, in a real browser (stored XSS)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import hostile_ops
import httpx
import pytest
from browser import CHROMIUM, DRIVER, MISSING, Browser, chromium
from hostile_ops import ALL, PAYLOADS
from job_servers import JobServer, StartServer

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason=MISSING),
    pytest.mark.timeout(300),
]
ENDED_S = 120.0

# Before any script of a page: whatever would show that text was taken for more than text.
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
for (const name of ["alert", "confirm", "prompt"]) window[name] = () => { window.pwned = name; };
"""
FOUND = """
const own = (address) => new URL(address, location).pathname.startsWith("/assets/");
return {
  pwned: window.pwned ?? null,
  violations: window.violations,
  scripts: [...document.scripts].filter((one) => !one.src || !own(one.src)).length,
  handlers: [...document.querySelectorAll("*")].flatMap((one) => [...one.attributes])
    .filter((one) => one.name.startsWith("on") || /^\\s*javascript:/i.test(one.value)
      && ["href", "src", "action", "formaction"].includes(one.name)).map((one) => one.name),
  strangers: document.querySelectorAll("iframe, object, embed, img[src=x], base").length,
};
"""
CLEAN = {"pwned": None, "violations": [], "scripts": 0, "handlers": [], "strangers": 0}


class _Target(BaseHTTPRequestHandler):
    """Answers like an inference server whose every word is hostile; every other call fails."""

    protocol_version = "HTTP/1.1"
    calls = 0

    def do_GET(self) -> None:
        self._send(200, "application/json", json.dumps({"data": [{"id": PAYLOADS[0]}]}).encode())

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        type(self).calls += 1
        if self.calls > 3 and self.calls % 2:
            self._send(400, "text/html", ALL.encode())
            return
        choice = {"index": 0, "delta": {"role": "assistant", "content": ALL}, "finish_reason": None}
        last = {"index": 0, "delta": {}, "finish_reason": PAYLOADS[1]}
        usage = {"prompt_tokens": 8, "completion_tokens": 4, "total_tokens": 12}
        common = {"id": PAYLOADS[2], "object": "chat.completion.chunk", "model": PAYLOADS[0]}
        events = [{**common, "choices": [choice]}, {**common, "choices": [last], "usage": usage}]
        text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        self._send(200, "text/event-stream", text.encode())

    def _send(self, status: int, media_type: str, body: bytes) -> None:
        self.send_response(status, PAYLOADS[0])
        self.send_header("content-type", media_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Target)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def server(start_module_server: StartServer) -> JobServer:
    return start_module_server(operations=Path(hostile_ops.__file__))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as window:
        window.screen(1280, 900)
        window.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
        yield window


@pytest.fixture(scope="module")
def jobs(server: JobServer, target: str) -> dict[str, str]:
    """Ended jobs by name: one that succeeded, one that failed, and a load test of the target."""
    labels = {"name": PAYLOADS[1], PAYLOADS[0]: PAYLOADS[2], "mark": "hostile"}
    ids = {}
    with httpx.Client(base_url=server.url, timeout=ENDED_S) as http:
        for name in ("say", "break_down"):
            body = {
                "input": {"text": ALL, "extra": {payload: payload for payload in PAYLOADS}},
                "labels": labels, "concurrency_key": PAYLOADS[4][:100],
            }  # fmt: skip
            answer = http.post(f"/v1/operations/{name}?wait=60s", json=body)
            assert answer.status_code == 200, answer.text
            ids[name] = answer.json()["job"]["id"]
    told = server.headway(
        "bench", target, "--server", server.url, "--model", PAYLOADS[0], "--streams", "1",
        "--max-requests", "12", "--label", f"name={PAYLOADS[2]}", "--output", "4", "--input", "16",
    )  # fmt: skip
    with httpx.Client(base_url=server.url) as http:
        newest = http.get("/v1/jobs", params={"limit": 1}).json()["jobs"][0]
    assert newest["operation"] == "headway.bench" or "bench" in newest["operation"], told.stderr
    return {**ids, "run": newest["id"]}


def is_clean(browser: Browser, address: str) -> None:
    browser.open(address)
    assert browser.run(FOUND) == CLEAN, address


def test_every_page_shows_it_as_text(
    server: JobServer, browser: Browser, jobs: dict[str, str], target: str
) -> None:
    searches = [f"/jobs?{urlencode({'q': payload, 'operation': payload})}" for payload in PAYLOADS]
    forms = [
        f"/runs/new?{urlencode({'target': value, 'model': value, 'name': value, 'rate': value})}"
        for value in PAYLOADS
    ]
    pairs = [f"/compare?a={jobs['run']}&b={jobs['run']}", f"/compare?a={jobs['say']}&b=x"]
    pages = [f"/jobs/{job_id}" for job_id in jobs.values()]
    for address in ("/jobs", "/targets", "/compare", *pages, *pairs, *searches, *forms):
        is_clean(browser, server.url + address)
    browser.open(f"{server.url}/jobs/{jobs['break_down']}")
    browser.until(lambda: browser.count(".line") >= len(PAYLOADS))
    for payload in PAYLOADS[:6]:
        assert payload in browser.text("#failure"), payload
        assert payload in browser.text("#log"), payload
    assert browser.text("h1") == PAYLOADS[1]
    browser.open(f"{server.url}/jobs/{jobs['run']}")
    assert PAYLOADS[0] in browser.text("main")
    assert browser.run(FOUND) == CLEAN


def test_what_changes_while_one_looks_stays_text_too(server: JobServer, browser: Browser) -> None:
    """Regions that are replaced, and log lines that are added, by a script."""
    browser.open(f"{server.url}/jobs")
    browser.until(lambda: browser.text("#connection") == "live")
    with httpx.Client(base_url=server.url, timeout=ENDED_S) as http:
        body = {"input": {"text": ALL}, "labels": {"name": PAYLOADS[4]}}
        job_id = http.post("/v1/operations/say", json=body).json()["id"]
    browser.until(lambda: browser.text(f"#row-{job_id} .state") == "succeeded")
    assert browser.run(FOUND) == CLEAN
    assert PAYLOADS[4] in browser.text(f"#row-{job_id}")


def test_a_file_of_a_job_is_neither_a_page_nor_a_script_of_this_server(
    server: JobServer, browser: Browser, jobs: dict[str, str]
) -> None:
    base = f"{server.url}/v1/jobs/{jobs['say']}/artifacts"
    with httpx.Client() as http:
        names = [each["name"] for each in http.get(base).json()["artifacts"]]
        names_of_run = http.get(f"{server.url}/v1/jobs/{jobs['run']}/artifacts").json()
        assert len(names) == 3
        assert "report.html" in [each["name"] for each in names_of_run["artifacts"]]
        for name in names:
            answer = http.get(f"{base}/{quote(name)}")
            assert answer.headers["content-type"] == "application/octet-stream"
            assert answer.headers["content-disposition"].startswith("attachment")
    browser.open(f"{server.url}/jobs")
    loaded = browser.driver.execute_async_script(
        "const done = arguments[1]; const one = document.createElement('script');"
        "one.src = arguments[0]; one.onload = () => done('loaded');"
        "one.onerror = () => done('refused'); document.head.append(one);",
        f"{base}/{quote(next(name for name in names if name.endswith('.js')))}",
    )
    assert loaded == "refused"
    assert browser.run("return window.pwned ?? null") is None
    # Opened by its address, a page of a job is saved and not shown.
    before = browser.driver.current_url
    browser.driver.get(f"{base}/page.html")
    assert browser.driver.current_url == before


def test_errors_of_the_api_are_data_and_not_pages(server: JobServer, browser: Browser) -> None:
    """What somebody is lured to open by its address."""
    for payload in PAYLOADS[:5]:
        for path in (f"/v1/{quote(payload)}", f"/v1/jobs/{quote(payload)}", f"/{quote(payload)}"):
            browser.driver.get(server.url + path)
            assert browser.run("return window.pwned ?? null") is None, path
            assert browser.run("return document.contentType") != "text/html", path


def test_the_watch_would_see_it(server: JobServer, browser: Browser) -> None:
    """What the tests above hold against `CLEAN` does change when text becomes markup."""
    browser.open(f"{server.url}/jobs")
    browser.run("document.body.insertAdjacentHTML('beforeend', arguments[0])", ALL)
    browser.until(lambda: browser.run("return window.violations.length") > 0)
    found = browser.run(FOUND)
    assert found["pwned"] is None  # the policy holds also then
    assert found["scripts"] > 0
    assert found["strangers"] > 0
    assert "onerror" in found["handlers"]
