"""Both transports through nginx, which re-chunks streams, closes connections and speaks TLS."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from headway.backends.backend import Call, Progress
from headway.backends.registry import create_backend
from headway.backends.spec import OpenAIBackendSpec, TargetSpec, TlsSpec
from headway.core.clock import monotonic_ns, ns_from_s

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")

CONFIG = """
daemon off; master_process off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;
events {{ worker_connections 256; }}
http {{
  log_format packed '$uri $gzip_ratio'; access_log {dir}/access.log packed;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
  fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  upstream sim {{ server 127.0.0.1:{upstream}; keepalive 8; }}
  server {{
    listen 127.0.0.1:{port}; listen 127.0.0.1:{tls_port} ssl;
    ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/key.pem;
    keepalive_requests 3;
    proxy_http_version 1.1; proxy_set_header Connection "";
    location /unbuffered/ {{ proxy_pass http://sim/; proxy_buffering off; }}
    location /buffered/ {{ proxy_pass http://sim/; proxy_buffering on; gzip on; gzip_types *; }}
  }}
}}
"""


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class Nginx:
    def __init__(self, directory: Path, upstream: int) -> None:
        authority = trustme.CA()
        cert = authority.issue_cert("127.0.0.1")
        authority.cert_pem.write_to_path(str(directory / "ca.pem"))
        cert.private_key_pem.write_to_path(str(directory / "key.pem"))
        for blob in cert.cert_chain_pems:
            blob.write_to_path(str(directory / "cert.pem"), append=True)
        self.ca_file = directory / "ca.pem"
        self.upstream_url = f"http://127.0.0.1:{upstream}"
        self._access_log = directory / "access.log"
        self.port, self.tls_port = free_port(), free_port()
        (directory / "nginx.conf").write_text(
            CONFIG.format(dir=directory, upstream=upstream, port=self.port, tls_port=self.tls_port)
        )
        assert NGINX is not None
        self.process = subprocess.Popen(
            [NGINX, "-p", str(directory), "-c", str(directory / "nginx.conf")],
            stderr=subprocess.DEVNULL,
        )

    def packed_replies(self) -> int:
        """How many replies left it compressed; it writes a line when a reply is over."""
        deadline_ns = monotonic_ns() + ns_from_s(20)
        while True:
            lines = [line.split() for line in self._access_log.read_text().splitlines()]
            asked = [ratio for path, ratio in lines if path.endswith("/chat/completions")]
            if len(asked) >= 48 or monotonic_ns() > deadline_ns:
                return sum(ratio != "-" for ratio in asked)

    def wait_ready(self) -> None:
        deadline_ns = monotonic_ns() + ns_from_s(10)
        while monotonic_ns() < deadline_ns:
            assert self.process.poll() is None, "nginx ended"
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.tls_port), timeout=1),
            ):
                return
        raise TimeoutError("nginx does not listen")


@pytest.fixture
def nginx(sim: Any, tmp_path: Path) -> Iterator[Nginx]:
    upstream = sim(ttft=0.01, itl=0.002)
    directory = tmp_path / "nginx"
    directory.mkdir()
    server = Nginx(directory, upstream.port)
    try:
        server.wait_ready()
        yield server
    finally:
        server.process.terminate()
        server.process.wait(10)


async def replies(url: str, transport: Any, **target: Any) -> list[Progress]:
    spec = OpenAIBackendSpec()
    backend = create_backend(spec, TargetSpec(url=url, transport=transport, **target))
    await backend.startup()
    try:
        await backend.validate()
        progresses = [Progress() for _ in range(12)]
        calls = [Call(prompt="through a proxy", output_tokens=20)] * len(progresses)
        for begin in range(0, 12, 4):
            answers = await asyncio.gather(
                *[
                    backend.resolve(call, (), progress)
                    for call, progress in zip(
                        calls[begin : begin + 4], progresses[begin : begin + 4], strict=True
                    )
                ]
            )
            assert [answer.failure for answer in answers] == [None] * 4
        return progresses
    finally:
        await backend.shutdown()


@pytest.mark.parametrize("transport", ["fast", "aiohttp"])
async def test_a_proxy_changes_neither_counts_nor_texts(nginx: Nginx, transport: str) -> None:
    """Re-chunked, gathered in buffers, or over TLS; connections end after three requests each."""
    plain, sealed = f"http://127.0.0.1:{nginx.port}", f"https://127.0.0.1:{nginx.tls_port}"
    sent = await replies(nginx.upstream_url, transport)
    direct = await replies(f"{plain}/unbuffered", transport)
    gathered = await replies(f"{plain}/buffered", transport)
    tls = await replies(f"{sealed}/unbuffered", transport, tls=TlsSpec(ca_file=nginx.ca_file))
    packed = await replies(f"{plain}/buffered", transport, headers={"Accept-Encoding": "gzip"})
    for progress in [*direct, *gathered, *tls, *packed]:
        assert (progress.chunks, progress.output_tokens) == (20, 20)
        assert progress.first_token_ns is not None
        assert progress.sent_ns is not None
        assert progress.first_token_ns - progress.sent_ns >= 9_000_000
    texts = [sorted(p.text for p in some) for some in (direct, gathered, tls, packed, sent)]
    assert len(texts[0][0].split()) == 20
    assert all(some == texts[0] for some in texts), "a proxy changed what was said"
    assert nginx.packed_replies() == 12
    assert any(progress.connection_reused for progress in direct)
    assert not all(progress.connection_reused for progress in direct)
