"""N5: the server's certificate, and whom a client trusts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trustme

from headway.api.known_hosts import KnownHosts
from headway.api.proxies import TrustedProxies
from headway.api.serve_settings import settings_from
from headway.api.tls import TlsFiles, TlsIdentity
from headway.client.authority import trusted_authorities
from headway.core.errors import ConfigError


def write_identity(directory: Path, authority: trustme.CA) -> TlsFiles:
    issued = authority.issue_cert("127.0.0.1", "localhost")
    cert, key = directory / "cert.pem", directory / "key.pem"
    cert.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())
    key.chmod(0o600)
    return TlsFiles(cert, key)


def test_a_key_that_others_can_read_is_refused_with_what_to_do(tmp_path: Path) -> None:
    files = write_identity(tmp_path, trustme.CA())
    for mode in (0o640, 0o604, 0o644):
        files.key.chmod(mode)
        with pytest.raises(ConfigError, match=f"chmod 600 {files.key}"):
            TlsIdentity(files)


def test_files_that_are_none_are_said_by_name(tmp_path: Path) -> None:
    files = write_identity(tmp_path, trustme.CA())
    files.cert.write_text("nothing")
    with pytest.raises(ConfigError, match=r"cert\.pem"):
        TlsIdentity(files)
    files.cert.unlink()
    with pytest.raises(ConfigError, match=r"cert\.pem"):
        TlsIdentity(files)
    with pytest.raises(ConfigError, match=r"--tls-cert and --tls-key"):
        settings_from(None, {"operations": ("x",), "tls_cert": files.cert})


def test_a_renewed_certificate_is_used_and_a_broken_one_is_not(tmp_path: Path) -> None:
    authority = trustme.CA()
    identity = TlsIdentity(write_identity(tmp_path, authority))
    assert not identity.renew()
    files = write_identity(tmp_path, authority)
    os.utime(files.cert, ns=(1, 1))
    assert identity.renew()
    files.cert.write_text("half-written")
    assert not identity.renew()
    write_identity(tmp_path, authority)
    assert identity.renew()


def test_the_authority_of_a_client_is_a_file_that_holds_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--cacert or HEADWAY_CACERT"):
        trusted_authorities(str(tmp_path / "none.pem"))
    (tmp_path / "text.pem").write_text("text")
    with pytest.raises(ConfigError, match="PEM"):
        trusted_authorities(str(tmp_path / "text.pem"))


def test_everybody_cannot_be_a_trusted_proxy() -> None:
    assert "10.1.2.3" in TrustedProxies(["10.1.0.0/16"])
    assert "10.2.0.1" not in TrustedProxies(["10.1.0.0/16", "127.0.0.1"])
    for name in ("*", "0.0.0.0/0", "::/0", "proxy.example", "10.0.0.1/8"):
        with pytest.raises(ConfigError, match=r"--trusted-proxy"):
            TrustedProxies([name])


def test_the_public_url_is_a_name_of_the_server() -> None:
    fields = {"operations": ("x",), "public_url": "https://Bench.example:8443/"}
    hosts = settings_from(None, fields).hosts()
    assert isinstance(hosts, KnownHosts)
    assert hosts.has("bench.example:8443")
    for wrong in ("bench.example", "https://a/path", "https://user@a", "javascript://x"):
        with pytest.raises(ConfigError, match="public_url"):
            settings_from(None, {"operations": ("x",), "public_url": wrong})
