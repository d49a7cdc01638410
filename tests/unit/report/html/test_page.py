"""L14: the page is one file, asks for nothing, and runs nobody else's markup."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from headway.records.record import Failure, Note
from headway.report import Report, build
from headway.report.html.page import page

HOSTILE = '"><script>document.title="owned"</script><img src=x onerror=alert(1)> \'</pre></details>'

VOID = {"meta", "br", "link", "img", "input", "hr"}


class _Checker(HTMLParser):
    """Reads a page: its elements, their attributes, and whether every one is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def check_closed(self) -> None:
        assert self._open == []


def _read(html: str) -> _Checker:
    checker = _Checker()
    checker.feed(html)
    checker.close()
    checker.check_closed()
    return checker


@pytest.fixture
def hostile(write_run: Any, make: Any) -> Report:
    """A run in which everything that somebody else can name is an attack."""
    writer = write_run(
        run_id=HOSTILE,
        spec={
            "target": {"url": HOSTILE, "model": HOSTILE},
            "labels": {HOSTILE: HOSTILE},
            "objectives": {"ttft_s": 1},
        },
        provenance={HOSTILE: {HOSTILE: [HOSTILE]}},
    )
    writer.started(name=HOSTILE, profile={"kind": HOSTILE})
    writer.records(make.completed(i, i / 50, output_tokens_source="usage") for i in range(150))
    failure = Failure("http_status", HOSTILE, status=500, body=HOSTILE)
    writer.records(make.errored(150 + i, 3 + i / 50, failure) for i in range(10))
    writer.event(Note(topic=HOSTILE, text=HOSTILE))
    writer.ended(4, offered=160, detail=HOSTILE)
    return build(writer.directory)


def test_hostile_text_stays_text(hostile: Report) -> None:
    checker = _read(page(hostile))
    scripts = [attributes for tag, attributes in checker.elements if tag == "script"]
    assert scripts == [{}]
    assert not [tag for tag, _ in checker.elements if tag in ("img", "iframe", "object", "link")]
    assert not [
        name for _, attributes in checker.elements for name in attributes if name.startswith("on")
    ]
    assert "".join(checker.text).count(HOSTILE) >= 5


def test_the_page_asks_for_nothing(steady: Any) -> None:
    html = page(build(steady().directory))
    checker = _read(html)
    for tag, attributes in checker.elements:
        assert "src" not in attributes, tag
        href = attributes.get("href")
        assert href is None or href.startswith("#"), href
    assert "url(" not in html
    assert "@import" not in html
    assert "fetch(" not in html


def test_the_content_policy_allows_its_own_style_and_script_alone(steady: Any) -> None:
    html = page(build(steady().directory))
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)
    assert policy is not None
    for kind in ("style", "script"):
        inner = re.search(rf"<{kind}>(.*?)</{kind}>", html, re.S)
        assert inner is not None
        digest = base64.b64encode(hashlib.sha256(inner[1].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy[1]
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    assert ' style="' not in html


def test_links_lead_somewhere_and_ids_are_unique(steady: Any) -> None:
    checker = _read(page(build(steady().directory)))
    ids = [attributes["id"] for _, attributes in checker.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in checker.elements:
        href = attributes.get("href")
        assert href is None or href[1:] in ids


def test_every_chart_has_a_name_a_description_and_a_table_to_turn_to(steady: Any) -> None:
    checker = _read(page(build(steady().directory)))
    charts = [a for tag, a in checker.elements if tag == "svg" and a.get("class") == "plot"]
    assert len(charts) >= 8
    for attributes in charts:
        assert attributes.get("role") == "img"
        assert "table" in (attributes.get("aria-label") or "")
    tables = sum(tag == "table" for tag, _ in checker.elements)
    assert tables == sum(tag == "caption" for tag, _ in checker.elements)


def test_the_verdict_and_its_evidence_are_said_in_words(write_run: Any, make: Any) -> None:
    writer = write_run()
    writer.started()
    writer.records(make.completed(i, i / 50, late_s=0.5) for i in range(500))
    writer.ended(10, offered=500)
    text = " ".join(_read(page(build(writer.directory))).text)
    assert "SCHEDULE_MISSED" in text
    assert "1% of the requests were sent 500.0 ms late or later" in text
    assert "failed SCHEDULE_MISSED" in " ".join(text.split())
    assert "passed WORKER_LOST" in " ".join(text.split())


def test_failures_stand_beside_the_successes(hostile: Report) -> None:
    text = " ".join(_read(page(hostile)).text)
    assert "Response time, failures as ∞" in text
    assert "∞" in text


def test_a_sweep_shows_how_the_target_behaves_as_load_grows(write_run: Any, make: Any) -> None:
    writer = write_run()
    for stage, rate in enumerate((10, 20, 40)):
        writer.started(
            stage=stage, name=f"constant {rate}/s", profile={"kind": "constant", "rate": [rate]}
        )
        writer.records(
            make.completed(i, i / rate, stage=stage, ttft_s=0.01 * rate) for i in range(rate * 5)
        )
        writer.ended(5, stage=stage, offered=rate * 5)
    html = page(build(writer.directory))
    assert "As load grows" in html
    assert html.count('class="point t1"') + html.count('class="point t1 hollow"') >= 9


def test_one_stage_has_no_sweep(steady: Any) -> None:
    assert "As load grows" not in page(build(steady().directory))


def test_partial_runs_say_so(write_run: Any, make: Any) -> None:
    writer = write_run()
    writer.started()
    writer.records(make.completed(i, i / 50) for i in range(150))
    text = " ".join(_read(page(build(writer.directory))).text)
    assert "The run is not complete" in text
    assert "it was never ended" in text


def test_the_same_report_gives_the_same_page(steady: Any) -> None:
    report = build(steady().directory)
    assert page(report) == page(report)
