"""A real nginx in front of a server, with TLS from an authority of the test's own."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import trustme

from headway.core.clock import monotonic_ns, ns_from_s

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
MISSING = "needs nginx, which is not installed here"
_PATIENCE_S = 30.0

# As docs/deploying.md shows it; buffering is left on, because the server turns it off for streams.
_CONFIG = """
daemon off; master_process off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log off; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
  fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/key.pem;
    client_max_body_size 1m;
    location / {{
      proxy_pass http://127.0.0.1:{upstream};
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_read_timeout 1h;
    }}
  }}
}}
"""


@dataclass(frozen=True)
class Proxy:
    """A running nginx."""

    url: str
    ca_file: Path


@contextmanager
def nginx_before(upstream: int, directory: Path) -> Iterator[Proxy]:
    """An nginx that speaks TLS and hands on to `upstream`, a port of this host."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    ca_file = directory / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    issued.private_key_pem.write_to_path(str(directory / "key.pem"))
    (directory / "cert.pem").write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
    port = _free_port()
    config = directory / "nginx.conf"
    config.write_text(_CONFIG.format(dir=directory, port=port, upstream=upstream))
    process = subprocess.Popen(
        [str(NGINX), "-p", str(directory), "-c", str(config)], stderr=subprocess.DEVNULL
    )
    try:
        _await(port, process)
        yield Proxy(f"https://127.0.0.1:{port}", ca_file)
    finally:
        process.terminate()
        process.wait(_PATIENCE_S)


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline_ns = monotonic_ns() + ns_from_s(_PATIENCE_S)
    while monotonic_ns() < deadline_ns:
        assert process.poll() is None, "nginx ended"
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", port), timeout=1),
        ):
            return
    raise TimeoutError("nginx does not listen")
