"""What TLS is set up from, and what is said when a handshake fails."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

from headway.core.errors import ConfigError
from headway.wire.exchange import Exchange, Timeouts, WireRequest
from headway.wire.fast import FastTransport
from headway.wire.options import TransportOptions
from headway.wire.origin import parse_origin
from headway.wire.tls import TlsOptions, make_ssl_context

DEADLINE_S = 20.0


async def failure_of(url: str, tls: TlsOptions | None = None) -> Any:
    options = TransportOptions(origin=parse_origin(url), tls=tls or TlsOptions())
    transport = FastTransport(options)
    await transport.startup()
    exchange = Exchange()
    limits = Timeouts(connect_s=DEADLINE_S, total_s=DEADLINE_S)
    await transport.exchange(WireRequest("GET", "/", {}), exchange, limits)
    await transport.shutdown()
    assert exchange.sent_ns is None
    return exchange.failure


def test_a_key_without_its_certificate_is_refused(tmp_path: Path) -> None:
    key = tmp_path / "client.key"
    trustme.CA().issue_cert("client.example").private_key_pem.write_to_path(str(key))
    with pytest.raises(ConfigError, match="client_key needs client_cert"):
        make_ssl_context(TlsOptions(client_key=str(key)))


def test_a_certificate_without_its_key_is_refused_and_names_the_file(tmp_path: Path) -> None:
    cert = tmp_path / "client.pem"
    trustme.CA().issue_cert("client.example").cert_chain_pems[0].write_to_path(str(cert))
    with pytest.raises(ConfigError, match=r"cannot use the client certificate .*client\.pem"):
        make_ssl_context(TlsOptions(client_cert=str(cert)))


def test_what_is_trusted_is_verified_unless_switched_off() -> None:
    """Trap 49."""
    strict = make_ssl_context(TlsOptions())
    assert (strict.verify_mode, strict.check_hostname) == (ssl.CERT_REQUIRED, True)
    loose = make_ssl_context(TlsOptions(verify=False))
    assert (loose.verify_mode, loose.check_hostname) == (ssl.CERT_NONE, False)


async def test_a_plain_server_is_no_matter_of_trust(serve: Any) -> None:
    """Whoever wrote https for http would look for a certificate in vain."""

    async def handle(number: int, reader: asyncio.StreamReader, writer: Any) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read()

    failure = await failure_of((await serve(handle)).replace("http://", "https://"))
    assert failure.category == "tls"
    assert failure.message.startswith("the TLS handshake failed (")
    assert failure.message.endswith("; does it speak plain http://?")
    assert "trusted" not in failure.message


async def test_a_server_that_closes_during_the_handshake_failed_at_tls(serve: Any) -> None:
    """The connection stood: it is not the target's address that is wrong."""

    async def handle(number: int, reader: asyncio.StreamReader, writer: Any) -> None:
        await reader.read(1)

    failure = await failure_of((await serve(handle)).replace("http://", "https://"))
    assert failure.category == "tls"


async def test_an_authority_that_is_not_known_is_named_as_the_remedy(serve: Any) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)

    async def handle(number: int, reader: asyncio.StreamReader, writer: Any) -> None:
        await reader.read()

    failure = await failure_of(await serve(handle, tls=context))
    assert failure.category == "tls"
    assert "is not trusted" in failure.message
    assert "ca_file" in failure.message
