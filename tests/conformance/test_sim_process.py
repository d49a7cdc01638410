"""The simulated server as a process: how it starts, is reached, and ends."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import trustme

from headway.core.clock import monotonic_ns
from headway.sim.faults import FAULT_NAMES

CHAT = b'{"messages":[{"role":"user","content":"Hello there"}],"max_tokens":4}'


@pytest.fixture(scope="module")
def server(module_sim: Any) -> Any:
    return module_sim()


def post(url: str, body: bytes = CHAT, headers: dict[str, str] | None = None) -> Any:
    request = urllib.request.Request(f"{url}/v1/chat/completions", body, headers or {})
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.loads(response.read())


def wait_until(condition: Any, timeout_s: float = 10.0) -> None:
    deadline_ns = monotonic_ns() + int(timeout_s * 1e9)
    while not condition():
        assert monotonic_ns() < deadline_ns, "the condition did not come about in time"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_at_once_and_completes_the_truth_log(sim: Any, number: int) -> None:
    server = sim(ttft=30)
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-request-id: mine\r\n"
        raw.sendall(head + b"content-length: %d\r\n\r\n" % len(CHAT) + CHAT)
        wait_until(lambda: b"requests_in_flight 1\n" in _metrics(server.url))
        begun_ns = monotonic_ns()
        assert server.stop(number) == 0
        assert monotonic_ns() - begun_ns < 5_000_000_000
    (line,) = server.truth()
    assert (line["outcome"], line["request_id"]) == ("shutdown", "mine")


def test_a_signal_ends_even_a_frozen_server(sim: Any) -> None:
    server = sim()
    request = urllib.request.Request(f"{server.url}/sim/freeze", b'{"seconds": 300}')
    with urllib.request.urlopen(request, timeout=10) as response:
        span = json.loads(response.read())
    wait_until(lambda: monotonic_ns() > span["from_ns"] + 100_000_000)
    assert server.stop() == 0


def _metrics(url: str) -> bytes:
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as response:
        return bytes(response.read())


def test_dies_with_its_parent_when_asked(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys, os\n"
        "p = subprocess.Popen([sys.executable, '-m', 'headway.sim', '--die-with-parent'],"
        " stdout=subprocess.PIPE)\n"
        "p.stdout.readline()\n"
        "sys.stdout.write(str(p.pid)); sys.stdout.flush()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, timeout=60)
    pid = int(ended.stdout)
    wait_until(lambda: not _alive(pid))


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_is_reached_through_a_unix_socket(sim: Any, tmp_path: Path) -> None:
    path = tmp_path / "sim.sock"
    server = sim(uds=path)
    assert server.ready["uds"] == str(path)
    with socket.socket(socket.AF_UNIX) as raw:
        raw.settimeout(10)
        raw.connect(str(path))
        raw.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert raw.recv(4096).startswith(b"HTTP/1.1 200 OK")


def test_speaks_tls(sim: Any, tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(str(key))
    server = sim(tls_cert=cert, tls_key=key)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=10)
    connection.request("POST", "/v1/chat/completions", CHAT)
    assert connection.getresponse().status == 200
    connection.close()


def test_wants_its_key(sim: Any) -> None:
    url = sim(api_key="sesame").url
    assert post(url, headers={"authorization": "Bearer sesame"})["object"] == "chat.completion"
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(url)
    with refused.value as error:
        assert error.code == 401
        assert json.loads(error.read())["error"]["code"] == "invalid_api_key"


def test_tokenize_counts_what_usage_counts(server: Any) -> None:
    url = server.url
    usage = post(url)["usage"]
    request = urllib.request.Request(f"{url}/tokenize", CHAT)
    with urllib.request.urlopen(request, timeout=10) as response:
        counted = json.loads(response.read())
    assert counted["count"] == len(counted["tokens"]) == usage["prompt_tokens"] == 2 + 4 + 3
    assert counted["max_model_len"] == 131_072


def test_metrics_count_what_was_served(sim: Any) -> None:
    url = sim().url
    post(url)
    lines = dict(
        line.rsplit(" ", 1)
        for line in _metrics(url).decode().splitlines()
        if not line.startswith("#")
    )
    assert lines["headway_sim_generation_tokens_total"] == "4"
    served = (
        'headway_sim_requests_total{path="/v1/chat/completions",status="200",outcome="completed"}'
    )
    assert lines[served] == "1"


def test_paths_and_methods_that_are_not_there(server: Any) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    statuses = []
    for method, path in (("GET", "/nowhere"), ("GET", "/v1/chat/completions"), ("HEAD", "/health")):
        connection.request(method, path)
        response = connection.getresponse()
        response.read()
        statuses.append(response.status)
    connection.close()
    assert statuses == [404, 405, 200]


def test_pipelined_requests_are_answered_in_order(sim: Any) -> None:
    server = sim(ttft=0.01)
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-request-id: %d\r\n"
        tail = b"content-length: %d\r\n\r\n" % len(CHAT) + CHAT
        raw.sendall(b"".join(head % number + tail for number in range(5)))
        lines = server.truth(at_least=5)
    assert [line["request_id"] for line in lines] == ["0", "1", "2", "3", "4"]


def test_a_client_that_expects_an_invitation_gets_it(server: Any) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n"
        raw.sendall(head + b"content-length: %d\r\n\r\n" % len(CHAT))
        assert raw.recv(4096) == b"HTTP/1.1 100 Continue\r\n\r\n"
        raw.sendall(CHAT)
        assert raw.recv(4096).startswith(b"HTTP/1.1 200 OK")


def test_a_request_may_come_in_any_pieces_and_in_chunks(server: Any) -> None:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in (CHAT[:20], CHAT[20:]))
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(data := head + chunks + b"0\r\n\r\n"), 7):
            raw.sendall(data[start : start + 7])
        assert raw.recv(4096).startswith(b"HTTP/1.1 200 OK")


def test_http_1_0_gets_a_stream_without_chunks(server: Any) -> None:
    body = CHAT[:-1] + b',"stream":true}'
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
        head = b"POST /v1/chat/completions HTTP/1.0\r\ncontent-length: %d\r\n\r\n" % len(body)
        raw.sendall(head + body)
        received = b""
        while piece := raw.recv(65536):
            received += piece
    head, _, stream = received.partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert stream.startswith(b"data: {")
    assert stream.endswith(b"data: [DONE]\n\n")


def test_impossible_options_end_it_with_a_clear_sentence() -> None:
    for arguments, text in (
        (["--ttft", "soon"], "--ttft: cannot read 'soon' as a distribution"),
        (["--max-batch", "0"], "--max-batch: Input should be greater than or equal to 1"),
        (["--fault", "explode"], "no fault is called 'explode'"),
        (["--truth-log", os.devnull + "/x"], "Not a directory"),
    ):
        ended = subprocess.run(
            [sys.executable, "-m", "headway.sim", *arguments], capture_output=True, timeout=60
        )
        assert ended.returncode == 2
        assert text in ended.stderr.decode()


def test_a_taken_port_is_told_in_one_sentence(server: Any) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "headway.sim", "--port", str(server.port)],
        capture_output=True,
        timeout=60,
    )
    assert ended.returncode == 2
    assert "Address already in use; choose another --host or --port" in ended.stderr.decode()


def test_the_headway_command_runs_the_same_server() -> None:
    script = (
        "import sys; from headway.cli.main import main; sys.argv[1:] = ['sim', '--port', '0']; "
        "main()"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout:
        assert json.loads(process.stdout.readline())["event"] == "ready"
        process.terminate()
    assert process.wait(10) == 0


def test_the_guide_names_every_option_and_every_fault() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "sim.md").read_text()
    help_text = subprocess.run(
        [sys.executable, "-m", "headway.sim", "--help"], capture_output=True, text=True, timeout=60
    ).stdout
    options = set(re.findall(r"^  (--[a-z-]+)", help_text, re.MULTILINE))
    assert len(options) > 20
    for name in [*options, *FAULT_NAMES]:
        assert f"`{name}" in guide, f"docs/sim.md does not name {name}"
