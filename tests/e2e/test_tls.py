"""N5: https with an authority of one's own."""

from __future__ import annotations

import socket
import ssl
import warnings
from pathlib import Path

import httpx
import pytest
import trustme
from job_servers import JobServer, StartServer

from headway.client import Client, RetryPolicy
from headway.client.errors import ServerUnreachable


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA) -> Path:
    directory = tmp_path_factory.mktemp("tls")
    issued = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(str(directory / "ca.pem"))
    (directory / "cert.pem").write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(str(directory / "key.pem"))
    (directory / "key.pem").chmod(0o600)
    return directory


@pytest.fixture(scope="module")
def server(start_module_server: StartServer, files: Path) -> JobServer:
    return start_module_server(
        "--tls-cert", str(files / "cert.pem"), "--tls-key", str(files / "key.pem")
    )


def test_jobs_run_and_are_followed_over_https(server: JobServer, files: Path) -> None:
    assert server.url.startswith("https://")
    cacert = str(files / "ca.pem")
    with Client(server.url, cacert=cacert) as client:
        assert client.result(client.submit("echo", {"text": "hello"}).id) is not None
    told = server.headway("jobs", "list", "--cacert", cacert)
    assert told.returncode == 0, told.stderr
    assert "echo" in told.stdout


def test_a_certificate_that_is_not_trusted_is_refused_with_what_to_do(
    server: JobServer, tmp_path: Path
) -> None:
    """Trap 49: there is no way to switch verification off."""
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "other.pem"))
    impatient = RetryPolicy(patience_s=0.0)
    for cacert in (None, str(tmp_path / "other.pem")):
        with (
            Client(server.url, cacert=cacert, retry=impatient) as client,
            pytest.raises(ServerUnreachable, match="--cacert or HEADWAY_CACERT"),
        ):
            client.operations()


def test_old_protocols_and_plain_http_are_not_spoken(server: JobServer, files: Path) -> None:
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.load_verify_locations(files / "ca.pem")
    old.set_ciphers("DEFAULT:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # old protocols are the point
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with (
        socket.create_connection(("127.0.0.1", server.port)) as plain,
        pytest.raises((ssl.SSLError, OSError)),
    ):
        old.wrap_socket(plain, server_hostname="127.0.0.1")
    with pytest.raises(httpx.TransportError):
        httpx.get(f"http://127.0.0.1:{server.port}/healthz", timeout=30)
