"""J20, N12: the dashboard in a real browser, with real jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from browser import CHROMIUM, DRIVER, MISSING, Browser, chromium
from job_servers import JobServer, StartServer

from headway.client import Job

OPERATIONS = Path(__file__).parent / "dashboard_ops.py"
HOSTILE = '<img src=x onerror="window.pwned=1"></textarea></script><script>window.pwned=2</script>'
PHONE, DESK = (390, 844), (1280, 900)

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason=MISSING),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def server(start_module_server: StartServer) -> JobServer:
    return start_module_server(operations=OPERATIONS)


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture
def browser(window: Browser) -> Browser:
    window.screen(*DESK)
    window.complaints()  # those of the test before
    return window


def submit(server: JobServer, operation: str, *, ended: bool = False, **body: Any) -> Job:
    wait = "?wait=60s" if ended else ""
    with httpx.Client(base_url=server.url, timeout=90) as http:
        answer = http.post(f"/v1/operations/{operation}{wait}", json=body)
        assert answer.status_code in (200, 202), answer.text
        sent = answer.json()
        return Job.model_validate(sent.get("job", sent))


def test_the_list_shows_new_jobs_and_changed_states_by_itself(
    server: JobServer, browser: Browser
) -> None:
    """Trap 17: a job that is submitted and ends elsewhere is seen without a reload."""
    browser.open(f"{server.url}/jobs")
    browser.until(lambda: browser.text("#connection") == "live")
    browser.run("window.stayed = true")
    job = submit(server, "slow", input={"steps": 5000})
    row = f"#row-{job.id}"
    browser.until(lambda: browser.text(f"{row} .state") == "running")
    browser.until(lambda: browser.text(f"{row} .said").startswith("step"))
    with server.client() as client:
        client.cancel(job.id)
    browser.until(lambda: browser.text(f"{row} .state") == "cancelled")
    assert browser.run("return window.stayed") is True
    assert browser.complaints() == []


def test_the_list_finds_jobs_by_state_label_and_text(server: JobServer, browser: Browser) -> None:
    wanted = submit(
        server, "echo_hostile", ended=True, input={"text": "x"}, labels={"team": "blue"}
    )
    other = submit(server, "echo_hostile", ended=True, input={"text": "x"}, labels={"team": "red"})
    for query in ("q=team%3Dblue", "q=blue", f"q={wanted.id}", "q=blue&state=SUCCEEDED"):
        browser.open(f"{server.url}/jobs?{query}")
        assert browser.count(f"#row-{wanted.id}") == 1, query
        assert browser.count(f"#row-{other.id}") == 0, query
    browser.open(f"{server.url}/jobs?q=blue&state=FAILED")
    assert "No job fits" in browser.text("#jobs")


def test_hostile_text_stays_text_wherever_it_is_shown(server: JobServer, browser: Browser) -> None:
    """Names, labels, output, progress, errors, results: nothing of them runs or becomes markup."""
    job = submit(
        server, "hostile", ended=True, labels={"name": HOSTILE, HOSTILE[:60]: HOSTILE},
        concurrency_key=HOSTILE[:100],
    )  # fmt: skip
    told = submit(server, "echo_hostile", ended=True, labels={"name": HOSTILE})
    for address in (
        "/jobs", f"/jobs?q={HOSTILE[:40]}", f"/jobs/{job.id}", f"/jobs/{told.id}",
        f"/runs/new?target={HOSTILE}&model={HOSTILE}&name={HOSTILE}&rate={HOSTILE}",
        "/targets", "/compare",
    ):  # fmt: skip
        browser.open(server.url + address.replace("<", "%3C").replace('"', "%22"))
        assert browser.count("img[src=x]") == 0, address
        assert browser.run("return window.pwned") is None, address
    browser.open(f"{server.url}/jobs/{job.id}")
    assert browser.text("h1") == HOSTILE
    browser.until(lambda: browser.text(".line") == f"said {HOSTILE}")
    assert HOSTILE in browser.text("#failure")
    assert browser.complaints() == []


def test_an_inline_script_would_not_run(server: JobServer, browser: Browser) -> None:
    """The policy stands behind the escaping: markup that got into the page could do nothing."""
    browser.open(f"{server.url}/jobs")
    browser.run(
        "const script = document.createElement('script'); script.textContent = 'window.ran = 1';"
        "document.body.append(script);"
        "document.body.insertAdjacentHTML('beforeend', '<i style=\"color: red\" id=styled>x</i>')"
    )
    assert browser.run("return window.ran") is None
    assert browser.run("return getComputedStyle(styled).color") != "rgb(255, 0, 0)"
    with httpx.Client(base_url=server.url, timeout=60) as http:
        headers = http.get("/jobs").headers
    policy = headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"


def test_the_log_has_its_colours_and_can_be_searched(server: JobServer, browser: Browser) -> None:
    job = submit(server, "colours", ended=True, input={"lines": 30})
    browser.open(f"{server.url}/jobs/{job.id}")
    browser.until(lambda: browser.count(".line") == 31)
    red = browser.find(".line:nth-child(8) .c1")
    assert red.text == "red 7"
    assert red.value_of_css_property("font-weight") == "700"
    assert browser.run("return document.querySelectorAll('.line')[2].children[1].style.color") == (
        "rgb(10, 200, 30)"
    )
    assert browser.find(".line:last-child").text == "100% done"
    browser.type("#log-search", "RED 1")
    browser.until(lambda: browser.count(".line.hit") == 11)
    browser.find("#log-search").send_keys("\n\n")
    browser.until(lambda: browser.text("#log-found") == "2 of 11")
    assert browser.text(".line.now").startswith("red 10 ")


def test_a_long_log_is_bounded_in_the_page_and_whole_in_the_download(
    server: JobServer, browser: Browser
) -> None:
    job = submit(server, "slow", input={"steps": 5000})
    browser.open(f"{server.url}/jobs/{job.id}")
    browser.until(lambda: browser.count(".line") >= 3)
    flood = (
        "const { LogView } = await import('/assets/log.js');"
        "const view = new LogView(document.getElementById('log'));"
        "for (let n = 0; n < 60; n++) {"
        "  view.add(1, 'x\\n'.repeat(500));"
        "  await new Promise(requestAnimationFrame);"
        "}"
        "arguments[0](view.count);"
    )
    count = browser.driver.execute_async_script(
        f"(async (...arguments) => {{{flood}}})(...arguments)"
    )
    assert count <= 10_000
    assert browser.count(".line") <= 10_400
    assert "earlier lines are in the download" in browser.text(".log-mark")
    with server.client() as client:
        client.cancel(job.id)


def test_numbers_of_any_job_are_charted_and_its_log_is_followed(
    server: JobServer, browser: Browser
) -> None:
    job = submit(server, "slow", input={"steps": 5000})
    browser.open(f"{server.url}/jobs/{job.id}")
    browser.until(lambda: browser.text("#live-charts figcaption strong") == "loss")
    browser.until(
        lambda: (browser.find("#live-charts path.line").get_attribute("d") or "").count("L") > 3
    )
    at_end = (
        "const log = document.getElementById('log');"
        "return log.scrollHeight - log.scrollTop - log.clientHeight"
    )
    browser.until(lambda: browser.count(".line") > 40)
    browser.until(lambda: browser.run(at_end) < 60)
    browser.click("#summary .danger")
    browser.driver.switch_to.alert.accept()
    browser.until(lambda: browser.text("#summary .state") == "cancelled")
    browser.until(
        lambda: "killed" in browser.text("#events") or "cancel" in browser.text("#events")
    )
    browser.click("#summary .button")  # Run again
    browser.until(
        lambda: job.id in browser.text("#summary .facts") and "again" in browser.text("#summary")
    )
    again = browser.driver.current_url.rpartition("/")[2]
    assert again != job.id
    with server.client() as client:
        client.cancel(again)


def test_a_waiting_job_says_who_holds_its_key_and_where_it_stands(
    server: JobServer, browser: Browser
) -> None:
    """N12, N5."""
    holder = submit(server, "slow", input={"steps": 5000}, concurrency_key="gpu")
    waiting = submit(server, "slow", input={"steps": 1}, concurrency_key="gpu")
    browser.open(f"{server.url}/jobs/{waiting.id}")
    browser.until(lambda: holder.id in browser.text("#wait .terms a"))
    assert "Position1" in browser.text("#wait .terms").replace(" ", "")
    with server.client() as client:
        client.cancel(holder.id)
    browser.until(lambda: browser.text("#summary .state") == "succeeded")
    assert browser.run("return document.getElementById('wait').hidden") is True


def test_a_waiting_job_s_place_changes_by_itself_when_those_before_it_leave(
    server: JobServer, browser: Browser
) -> None:
    """Nothing happens to the job itself, so its own stream would say nothing."""
    jobs = [submit(server, "slow", input={"steps": 5000}, concurrency_key="line") for _ in range(3)]
    browser.open(f"{server.url}/jobs/{jobs[2].id}")
    browser.until(lambda: browser.text("#wait dd") == "2")
    with server.client() as client:
        client.cancel(jobs[1].id)
        browser.until(lambda: browser.text("#wait dd") == "1")
        client.cancel(jobs[0].id)
        browser.until(lambda: browser.text("#summary .state") == "running")
        browser.until(lambda: browser.count(".line") > 0)
        client.cancel(jobs[2].id)


def test_pages_are_readable_and_usable_without_their_script(server: JobServer) -> None:
    job = submit(server, "colours", ended=True)
    running = submit(server, "slow", input={"steps": 5000})
    with httpx.Client(base_url=server.url, timeout=60) as http:
        listed = http.get("/jobs").text
        assert f'href="/jobs/{job.id}"' in listed
        shown = http.get(f"/jobs/{job.id}").text
        assert "red 0 plain green" in shown
        assert "\x1b" not in shown
        cancelled = http.post(f"/jobs/{running.id}/cancel")
        assert cancelled.headers["location"] == f"/jobs/{running.id}"
        checked = http.post(
            "/runs/new", data={"target": "http://localhost:1", "rate": "x", "profile": "poisson",
                               "do": "check"},
        )  # fmt: skip
    assert "is not a number" in checked.text


def test_forms_of_other_sites_are_refused(server: JobServer) -> None:
    job = submit(server, "slow", input={"steps": 5000})
    with httpx.Client(base_url=server.url, timeout=60) as http:
        for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
            assert http.post(f"/jobs/{job.id}/cancel", headers=headers).status_code == 403
            assert http.post("/runs/new", headers=headers).status_code == 403
        assert http.get(f"/v1/jobs/{job.id}").json()["state"] != "CANCELLED"
        own = {"origin": server.url, "sec-fetch-site": "same-origin"}
        assert http.post(f"/jobs/{job.id}/cancel", headers=own).status_code == 303


@pytest.mark.parametrize("dark", [False, True])
def test_every_page_fits_a_phone_and_names_its_controls(
    server: JobServer, browser: Browser, dark: bool
) -> None:
    job = submit(server, "colours", ended=True, labels={"a-long-label": "x" * 300})
    browser.screen(*PHONE, dark=dark)
    for address in ("/jobs", f"/jobs/{job.id}", "/runs/new", "/targets", "/compare", "/jobs/none"):
        browser.open(server.url + address)
        width = browser.run("return document.documentElement.scrollWidth")
        assert width <= PHONE[0], f"{address} is {width} pixels wide"
        assert browser.count("h1") == 1
        nameless = browser.run(
            "return [...document.querySelectorAll('input:not([type=hidden]), select, button, a')]"
            ".filter(each => !(each.textContent.trim() || each.labels?.length"
            " || each.getAttribute('aria-label'))).map(each => each.outerHTML)"
        )
        assert nameless == [], address
        paper = browser.run("return getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(18, 21, 26)") is dark


def test_the_keyboard_reaches_the_search_and_skips_to_the_content(
    server: JobServer, browser: Browser
) -> None:
    browser.open(f"{server.url}/jobs")
    browser.find("body").send_keys("\t")
    assert browser.run("return document.activeElement.textContent") == "Skip to content"
    browser.find("body").send_keys("/")
    assert browser.run("return document.activeElement.name") == "q"
