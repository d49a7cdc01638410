"""The whole product in a browser: runs from the form, watched, cancelled, resumed, compared."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from browser import CHROMIUM, DRIVER, MISSING, Browser, chromium
from job_servers import StartServer

from headway.client import Client, Job

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason=MISSING),
    pytest.mark.timeout(400),
]

SWEEP = {
    "profile": "sweep", "steps": "1", "saturation": "4", "seconds": "4s", "output": "8",
}  # fmt: skip
ENDED_S = 120.0


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with chromium(tmp_path) as browser:
        browser.screen(1280, 900)
        yield browser


def start_run(browser: Browser, server_url: str, **fields: str) -> str:
    """Fill the form by its address, start the run, and give its job's id."""
    browser.open(f"{server_url}/runs/new?{urlencode(fields)}")
    browser.click("#new-run .primary")
    browser.until(lambda: "/jobs/" in browser.driver.current_url)
    return browser.driver.current_url.rpartition("/")[2]


def state_becomes(browser: Browser, word: str) -> None:
    browser.until(lambda: browser.text("#summary .state") == word, ENDED_S)


def test_a_team_measures_cancels_loses_its_server_resumes_and_compares(
    start_server: StartServer, sim: Callable[..., object], browser: Browser, tmp_path: Path
) -> None:
    """Issue 4, must-show 1. N4, N5, N6, N7; trap 47."""
    target = sim(ttft=0.01, itl=0.002).url  # type: ignore[attr-defined]
    server = start_server()

    # A sweep, typed into the form; the command line follows what is typed.
    browser.open(f"{server.url}/runs/new")
    browser.type("#field-target", target)
    browser.until(lambda: target in browser.text("#command"))
    for name, value in SWEEP.items():
        if name != "profile":
            browser.type(f"#field-{name}", value)
    browser.type("#field-name", "first")
    browser.until(lambda: "--label name=first" in browser.text("#command"))
    command = browser.text("#command")
    assert "--sweep-steps 1" in command
    assert f"--server {server.url}" in command
    browser.type("#field-steps", "many")
    browser.until(lambda: "not a valid integer" in browser.text("#plan .problem"))
    browser.type("#field-steps", "1")
    browser.until(lambda: browser.count("#plan .problem") == 0)
    browser.click("#new-run .primary")
    browser.until(lambda: "/jobs/" in browser.driver.current_url)
    first = browser.driver.current_url.rpartition("/")[2]

    state_becomes(browser, "running")

    # Another one waits for the target, says why and until when, and is cancelled.
    main = browser.driver.current_window_handle
    browser.driver.switch_to.new_window("window")
    second = start_run(browser, server.url, target=target, **SWEEP, name="second")
    browser.until(lambda: first in browser.text("#wait .terms a"))
    browser.click("#summary .danger")
    browser.driver.switch_to.alert.accept()
    state_becomes(browser, "cancelled")
    with Client(server.url) as client:
        assert client.get(second).outcome == "cancelled"

    # The first is watched live: its numbers, its charts, its log.
    browser.driver.switch_to.window(main)
    browser.until(lambda: "In flight" in browser.text("#figures"))
    rate = "#live-charts figure:first-child path.t3"
    browser.until(lambda: (browser.find(rate).get_attribute("d") or "").count("L") > 2)
    browser.until(lambda: "stage 1" in browser.text("#log"))

    # The first ends with its report, without a reload.
    browser.until(lambda: browser.count("#report .verdict-word") == 1, ENDED_S)
    assert browser.text("#summary .state") == "succeeded"
    assert browser.count("#report svg.plot") > 6
    browser.click("#report .report-links a:first-child")
    report = tmp_path / "downloads" / "report.html"
    browser.until(report.exists)
    assert "Headway load test" in report.read_text(encoding="utf-8")
    assert browser.complaints() == []

    # The server dies in the middle of a third, is started again, and the run goes on.
    third = start_run(
        browser, server.url, target=target, profile="poisson", rate="20,30,40", seconds="3s",
        output="8", name="third",
    )  # fmt: skip
    browser.until(lambda: "2 of 3" in browser.text("#figures"), ENDED_S)
    server.signal(signal.SIGKILL)
    server.wait()
    browser.until(lambda: "connection lost" in browser.text("#connection"))
    server = start_server(port=server.port)
    browser.until(lambda: browser.text("#connection") in ("live", "ended"))
    browser.until(lambda: browser.count("#report .verdict-word") == 1, ENDED_S)
    with Client(server.url) as client:
        job: Job = client.get(third)
        assert job.outcome == "succeeded"
        result = client.result(third)
    assert result["resumed"] >= 1
    assert [stage["partial"] for stage in result["stages"]].count(True) == 1
    assert "partial" in browser.text("#report")

    # The first again, and the two compared.
    browser.open(f"{server.url}/jobs/{first}")
    browser.click("#summary .button")
    browser.until(lambda: first not in browser.driver.current_url)
    fourth = browser.driver.current_url.rpartition("/")[2]
    browser.until(lambda: browser.count("#report .verdict-word") == 1, ENDED_S)
    browser.open(f"{server.url}/compare?a={first}&b={fourth}")
    assert browser.text("#comparison .verdict-word") in ("CANNOT TELL", "BETTER", "WORSE", "MIXED")
    assert browser.count(".comparison tbody tr") >= 16
    browser.open(f"{server.url}/compare?a={first}&b={third}")
    assert browser.text(".verdict-word") == "NOT COMPARABLE"

    # The target's page has all of it.
    browser.open(f"{server.url}/targets")
    assert browser.text(".target .holder") == "free"
    assert browser.count(".target svg.plot") == 6
    names = browser.driver.find_elements("css selector", ".target tbody th a")
    assert {"first", "second", "third"} <= {name.text for name in names}
