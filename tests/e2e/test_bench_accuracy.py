"""What Headway measures is what the server did, by the server's own clock."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from headway.core.clock import NS_PER_S, monotonic_ns

RATE_PER_S = 200
SECONDS = 10
TRIES = 3
TTFT_S = 0.020
GAP_S = 0.005
TOKENS = 20
TOLERANCE_S = 0.001
"""Beside what a byte takes there and back on this machine, with two idle processes to wake."""
PROXY_S = 0.002
"""What nginx may add to a time to first token: two more hops, each with a wake-up. Measured on two
idle cores: 1.1 ms from the server's stamp to the client's."""

NGINX = """
daemon off; pid {directory}/nginx.pid; error_log {directory}/error.log; worker_processes 1;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_body_temp_path {directory}/body; proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/f; uwsgi_temp_path {directory}/u; scgi_temp_path {directory}/s;
  upstream sim {{ server 127.0.0.1:{upstream}; keepalive 256; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://sim; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off;
    }}
  }}
}}
"""


@pytest.fixture
def nginx(tmp_path: Path) -> Iterator[Callable[[int], str]]:
    """A factory of nginx proxies before a port; nginx cuts the stream into chunks of its own."""
    binary = shutil.which("nginx")
    if binary is None:
        pytest.skip("nginx is not installed (Debian's package nginx); CI has it")
    processes: list[subprocess.Popen[bytes]] = []

    def start(upstream: int) -> str:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        config = tmp_path / "nginx.conf"
        config.write_text(NGINX.format(directory=tmp_path, upstream=upstream, port=port))
        processes.append(subprocess.Popen([binary, "-c", str(config), "-p", str(tmp_path)]))
        _wait_until_it_listens(port)
        return f"http://127.0.0.1:{port}"

    yield start
    for process in processes:
        process.terminate()
        process.wait(10)


def _wait_until_it_listens(port: int) -> None:
    deadline_ns = monotonic_ns() + 10 * NS_PER_S
    while monotonic_ns() < deadline_ns:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise TimeoutError("nginx did not start")


def _bench(url: str, cwd: Path) -> dict[str, Any]:
    arguments = [
        *(url, "--profile", "constant", "--rate", str(RATE_PER_S)),
        *("--max-requests", str(RATE_PER_S * SECONDS), "--warmup", "2s"),
        *("--input", "32", "--output", str(TOKENS), "--no-calibrate", "--json"),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "headway.cli.main", "bench", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=110,
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


ECHO = """
import socket
with socket.create_server(("127.0.0.1", 0)) as listening:
    print(listening.getsockname()[1], flush=True)
    with listening.accept()[0] as peer:
        while byte := peer.recv(1):
            peer.send(byte)
"""


def _round_trip_s() -> float:
    """Median time of a byte to another process and back, as seldom as the requests are sent."""
    with subprocess.Popen([sys.executable, "-c", ECHO], stdout=subprocess.PIPE) as echo:
        assert echo.stdout is not None
        with socket.create_connection(("127.0.0.1", int(echo.stdout.readline())), 10) as peer:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            taken_s = []
            for _ in range(RATE_PER_S):
                time.sleep(1 / RATE_PER_S)
                began_ns = monotonic_ns()
                peer.send(b"x")
                assert peer.recv(1) == b"x"
                taken_s.append((monotonic_ns() - began_ns) / NS_PER_S)
    return median(taken_s)


@pytest.mark.serial
@pytest.mark.parametrize("proxied", [False, True], ids=["direct", "behind nginx"])
def test_medians_agree_with_the_server_s_truth(
    sim: Any, nginx: Any, tmp_path: Path, proxied: bool
) -> None:
    """Three tries: a core that is taken away for seconds delays half of all reads, and no client
    can know when what it reads late had come."""
    errors = []
    for number in range(TRIES):
        server = sim(ttft=TTFT_S, itl=GAP_S)
        directory = tmp_path / str(number)
        directory.mkdir()
        report = _bench(nginx(server.port) if proxied else server.url, directory)
        server.stop()
        stage = report["stages"][0]
        assert stage["counts"]["recorded"] == RATE_PER_S * SECONDS
        assert stage["counts"]["missing"] == 0
        assert stage["counts"]["duplicates"] == 0
        assert stage["counts"]["errored"] == stage["counts"]["cancelled"] == 0
        assert stage["lateness"]["count"] == stage["counts"]["offered"]
        errors.append(_errors(stage, server.truth()))
        within_s = TOLERANCE_S + _round_trip_s() + (PROXY_S if proxied else 0)
        limits = {"ttft": within_s, "latency": within_s, "tpot": TOLERANCE_S}
        if all(abs(errors[-1][name]) <= limit for name, limit in limits.items()):
            return
    pytest.fail(f"seconds by which the medians differ from the server's, each time: {errors}")


def _errors(stage: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, float]:
    """How far the medians of a stage are from the server's own, in seconds."""
    truth = [row for row in rows if row["output_tokens"] == TOKENS]
    ttft = median((row["first_token_ns"] - row["arrival_ns"]) / 1e9 for row in truth)
    latency = median((row["end_ns"] - row["arrival_ns"]) / 1e9 for row in truth)
    tpot = median((row["end_ns"] - row["first_token_ns"]) / 1e9 / (TOKENS - 1) for row in truth)
    return {
        "ttft": stage["ttft"]["p50_s"] - ttft,
        "latency": stage["latency"]["p50_s"] - latency,
        "tpot": stage["tpot"]["p50_s"] - tpot,
    }
