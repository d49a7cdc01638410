"""L14: the page in a real browser, with a report that tries to break out of it."""

from __future__ import annotations

import http.server
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from headway.records.record import Failure, RequestRecord, StageEnded, StageStarted
from headway.records.run_dir import RunDirectory, RunFile
from headway.report import build, write_reports

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--enable-logging=stderr", "--virtual-time-budget=2000",
)  # fmt: skip

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")


@pytest.fixture
def listener() -> Iterator[tuple[str, list[str]]]:
    """A server that must never be asked for anything: its URL and what it was asked for."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


@pytest.fixture
def browse(tmp_path: Path) -> Callable[..., tuple[str, str]]:
    """Open a page and give back its document after its scripts ran, and the browser's log."""

    def open_page(file: Path, *flags: str) -> tuple[str, str]:
        profile = tmp_path / f"chromium-{len(list(tmp_path.iterdir()))}"
        command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", *flags, "--dump-dom"]
        done = subprocess.run(
            [*command, file.as_uri()], capture_output=True, text=True, timeout=90, check=True
        )
        return done.stdout, done.stderr

    return open_page


def _write_run(path: Path, hostile: str) -> Path:
    run = RunFile(
        run_id="r1",
        created="2026-11-30T00:00:00Z",
        seed=1,
        spec={"target": {"url": "http://t", "model": f"model {hostile}"}, "labels": {"l": hostile}},
    )
    directory = RunDirectory.create(path, run)
    for stage, rate in enumerate((10, 20)):
        directory.append_event(
            StageStarted(
                stage=stage,
                name=f"constant {rate}/s",
                profile={"kind": "constant", "rate": [rate]},
                started_wall="2026-11-30T00:00:00Z",
                started_monotonic_ns=1,
                workers=1,
            )
        )
        lines = b"".join(
            msgspec.json.encode(_record(stage, i, i * 10**9 // rate, hostile)) + b"\n"
            for i in range(rate * 10)
        )
        directory.append_records(lines)
        directory.append_event(
            StageEnded(
                stage=stage,
                at_ns=10 * 10**9 + 10**8,
                sending_ended_ns=10 * 10**9,
                reason="max_seconds",
                offered=rate * 10,
            )
        )
    write_reports(directory, build(directory))
    directory.close()
    return path / "report.html"


def _record(stage: int, index: int, due_ns: int, hostile: str) -> RequestRecord:
    if index % 25 == 3:
        failure = Failure("http_status", f"HTTP 500 {hostile}", status=500, body=hostile * 3)
        return RequestRecord(
            stage=stage, index=index, status="errored", due_ns=due_ns, sent_ns=due_ns,
            done_ns=due_ns + 10**6, failure=failure,
        )  # fmt: skip
    return RequestRecord(
        stage=stage, index=index, status="completed", due_ns=due_ns, sent_ns=due_ns,
        first_token_ns=due_ns + 20 * 10**6, first_content_ns=due_ns + 20 * 10**6,
        last_token_ns=due_ns + 90 * 10**6, done_ns=due_ns + 90 * 10**6, gaps_ns=[5 * 10**6] * 14,
        output_tokens=15, output_tokens_source="usage", input_tokens=100,
    )  # fmt: skip


def test_a_hostile_report_runs_nothing_and_asks_for_nothing(
    tmp_path: Path,
    listener: tuple[str, list[str]],
    browse: Callable[..., tuple[str, str]],
) -> None:
    url, asked = listener
    hostile = (
        f'"></pre></td><script>document.title="owned"</script><img src="{url}/img">'
        f'<link rel="stylesheet" href="{url}/css"><iframe src="{url}/frame"></iframe>'
        f"<style>@import '{url}/import';</style>"
    )
    document, log = browse(_write_run(tmp_path / "run", hostile))
    assert asked == []
    assert "<title>owned" not in document
    assert 'data-ready="yes"' in document, log
    assert "&lt;script&gt;" in document
    assert "CONSOLE" not in log, log


def test_the_pages_own_script_and_style_are_allowed_by_its_policy(
    tmp_path: Path, browse: Callable[..., tuple[str, str]]
) -> None:
    document, log = browse(_write_run(tmp_path / "run", ""))
    assert 'data-ready="yes"' in document
    assert "Content Security Policy" not in log
    assert document.count("<svg") > 10


@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_does_not_scroll_sideways(
    tmp_path: Path, browse: Callable[..., tuple[str, str]], width: int
) -> None:
    """Tables scroll inside themselves; the page of a phone stays as wide as the phone."""
    report = _write_run(tmp_path / "run", "averyveryverylongwordwithoutanybreak" * 4)
    # A browser window has a least width; a frame has none.
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<iframe id="f" width="{width}" height="900" src="{report.as_uri()}"></iframe>'
        "<script>onload = () => {"
        "const page = document.getElementById('f').contentDocument.documentElement;"
        "document.body.dataset.overflow = page.scrollWidth - page.clientWidth;"
        "}</script>"
    )
    document, _ = browse(frame, "--allow-file-access-from-files")
    assert 'data-overflow="0"' in document
