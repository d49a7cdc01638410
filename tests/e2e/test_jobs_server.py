"""The server's life: killed, restarted, drained, and no orphan left (J18)."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import psutil

from headway.client import Client, LogChunk, RetryPolicy
from headway.core.states import JobState

ENGINE_OPERATIONS = Path(__file__).parent / "engine_ops.py"


def gone(processes: list[psutil.Process], timeout_s: float = 20.0) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=timeout_s)
    return not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def test_a_killed_server_is_followed_across_its_restart_exactly_once(start_server: Any) -> None:
    """J20, traps 24 and 25b: kill -9 in the middle of a log, and nothing twice and nothing lost."""
    server = start_server()
    seen: list[str] = []
    halfway = threading.Event()

    def follow() -> None:
        with Client(server.url, retry=RetryPolicy(patience_s=60)) as client:
            for said in client.follow(job.id):
                if isinstance(said, LogChunk):
                    seen.append(f"{said.attempt}|{said.text}")
                    if "".join(seen).count("\n") > 5:
                        halfway.set()

    with server.client() as client:
        job = client.submit("talk", {"lines": 40, "pause_s": 0.05})
    follower = threading.Thread(target=follow)
    follower.start()
    assert halfway.wait(30)
    tree = server.tree()
    server.signal(signal.SIGKILL)
    server.wait()
    assert gone(tree), "the worker and its jobs end with their server"
    again = start_server(port=server.port)
    follower.join(60)
    assert not follower.is_alive()
    with again.client() as client:
        ended = client.get(job.id)
        whole = ["".join(client.logs(job.id, attempt=n)) for n in range(1, ended.attempt + 1)]
    assert ended.is_ended
    for attempt, text in enumerate(whole, 1):
        pieces = [each.partition("|")[2] for each in seen if each.startswith(f"{attempt}|")]
        assert "".join(pieces) == text, f"attempt {attempt}"


def test_a_second_server_of_a_directory_is_refused_with_a_sentence(start_server: Any) -> None:
    server = start_server()
    command = [
        sys.executable, "-m", "headway.cli.main", "serve", "--operations",
        str(Path(__file__).parent / "jobs_ops.py"), "--port", "0",
        "--state-dir", str(server.state_dir),
    ]  # fmt: skip
    second = subprocess.run(command, text=True, capture_output=True, timeout=60, check=False)
    assert second.returncode == 2
    assert f"a Headway server already uses {server.state_dir}" in second.stderr
    assert f"process {server.pid}, {server.url}" in second.stderr
    with server.client() as client:
        assert client.run("echo", {"text": "still here"}) == "still here"


def test_sigterm_drains_and_leaves_neither_process_nor_port(start_server: Any) -> None:
    """Trap 19: a plain SIGTERM left 40 orphans and the port taken."""
    server = start_server("--drain-s", "20")
    with server.client() as client:
        # It still talks when the signal has come, also on a busy machine.
        job = client.submit("talk", {"lines": 100, "pause_s": 0.05})
        next(said for said in client.follow(job.id) if isinstance(said, LogChunk))
        tree = server.tree()
        server.signal(signal.SIGTERM)
        assert client.result(job.id) == {"lines": 100}, "a draining server still answers"
        assert server.wait() == 0
    assert gone(tree)
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", server.port))
    assert not list((server.state_dir / "run" / "bells").glob("*"))


def test_a_drained_attempt_is_given_back_and_not_counted(start_server: Any, tmp_path: Path) -> None:
    server = start_server("--drain-s", "0", operations=ENGINE_OPERATIONS)
    with server.client() as client:
        job = client.submit("until_file", {"path": str(tmp_path / "never")})
        next(said for said in client.follow(job.id) if isinstance(said, LogChunk))
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    again = start_server(operations=ENGINE_OPERATIONS)
    with again.client() as client:
        ended = client.wait(job.id, timeout_s=60)
    assert ended.state is JobState.SUCCEEDED
    assert (ended.attempt, ended.released) == (2, 1)


def test_a_second_sigterm_ends_at_once(start_server: Any) -> None:
    server = start_server("--drain-s", "600")
    with server.client() as client:
        job = client.submit("sleep", {"seconds": 600})
        next(said for said in client.follow(job.id) if isinstance(said, LogChunk))
    tree = server.tree()
    server.signal(signal.SIGTERM)
    with httpx.Client(base_url=server.url, verify=False, timeout=60) as http:
        while http.get("/readyz").json().get("detail") != "the server is stopping":
            pass
    server.signal(signal.SIGTERM)
    assert server.wait(30) == 0
    assert gone(tree)


def test_a_closed_terminal_is_a_drain_too(start_server: Any) -> None:
    server = start_server()
    tree = server.tree()
    server.signal(signal.SIGHUP)
    assert server.wait() == 0
    assert gone(tree)


def test_a_dead_worker_is_started_again_and_the_server_goes_on(start_server: Any) -> None:
    server = start_server()
    with server.client() as client:
        assert client.run("echo", {"text": "one"}) == "one"
        [worker] = psutil.Process(server.pid).children()
        worker.kill()
        assert client.run("echo", {"text": "two"}, timeout_s=60) == "two"
    with httpx.Client(base_url=server.url, verify=False, timeout=60) as http:
        assert "headway_worker_restarts" in http.get("/metrics").text
        assert http.get("/readyz").status_code == 200


def test_one_scrape_tells_of_all_processes(start_server: Any) -> None:
    """J15."""
    server = start_server()
    with server.client() as client:
        client.run("echo", {"text": "x"})
        client.run("ping")
    with httpx.Client(base_url=server.url, verify=False, timeout=60) as http:
        page = http.get("/metrics").text
    for line in (
        "headway_worker_up 1.0",
        "headway_store_up 1.0",
        'headway_jobs_ended_total{operation="echo",outcome="succeeded"} 1.0',
        'headway_attempts_started_total{lane="short",operation="echo",process="worker"} 1.0',
        'headway_attempts_started_total{lane="inline",operation="ping",process="api"} 1.0',
        'headway_lane_slots{kind="guaranteed",lane="long",process="worker"}',
    ):
        assert line in page, line
    families = [line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")]
    assert len(families) == len(set(families)), "one family, told once"


def test_what_cannot_be_served_is_refused_with_a_sentence(tmp_path: Path) -> None:
    operations = str(Path(__file__).parent / "jobs_ops.py")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        refusals = {
            ("--operations", operations, "--host", "0.0.0.0"): "will not listen on 0.0.0.0",
            ("--operations", operations, "--host", "example.com"): "is not an address",
            ("--operations", operations, "--port", port): f"port {port} of 127.0.0.1 is taken",
            ("--operations", "no_such_module"): "there is no module no_such_module",
            ("--no-bench",): "operations",
        }
        for flags, words in refusals.items():
            done = subprocess.run(
                [sys.executable, "-m", "headway.cli.main", "serve", "--state-dir",
                 str(tmp_path / "state"), *flags],
                text=True, capture_output=True, timeout=60, check=False,
            )  # fmt: skip
            assert done.returncode == 2, done.stderr
            assert words in done.stderr
            assert "Traceback" not in done.stderr


def test_the_log_is_json_with_job_ids_and_without_secrets(start_server: Any) -> None:
    server = start_server()
    with httpx.Client(base_url=server.url, verify=False, timeout=60) as http:
        job_id = http.post("/v1/operations/echo", json={}).json()["id"]
        http.get(f"/v1/jobs/{job_id}?wait=10s", headers={"authorization": "Bearer hush-hush"})
        http.get("/v1/jobs?cursor=hush-hush")
    server.signal(signal.SIGTERM)
    server.wait()
    lines = server.log()
    assert any(line.get("job_id") == job_id and line["status"] == 200 for line in lines)
    assert "hush-hush" not in json.dumps(lines)
