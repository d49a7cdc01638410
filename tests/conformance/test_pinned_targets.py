"""A name that is rebound during a run leads nowhere else: real sockets, both transports (N5)."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trustme

from headway.dispatch.preconditions import HealthClient
from headway.wire.exchange import Exchange, Timeouts, WireRequest
from headway.wire.options import TransportOptions
from headway.wire.origin import parse_origin
from headway.wire.tls import TlsOptions
from headway.wire.transport import open_transport

NAME = "rebound.test"
QUICK = Timeouts(connect_s=20, total_s=30)


@dataclass
class Two:
    """A target at 127.0.0.1, and a trap at the same port of 127.0.0.2, where the name leads now."""

    port: int = 0
    heads: list[bytes] = field(default_factory=list)
    trapped: int = 0
    looked_up: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        if b"/away " in head:
            writer.write(
                b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.2:%d/\r\nContent-Length: 0\r\n"
                b"Connection: close\r\n\r\n" % self.port
            )
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()

    async def trap(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.trapped += 1
        writer.close()


@pytest.fixture
async def two(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Two]:
    two = Two()
    target = await asyncio.start_server(two.serve, "127.0.0.1", 0)
    two.port = target.sockets[0].getsockname()[1]
    trap = await asyncio.start_server(two.trap, "127.0.0.2", two.port)
    original = socket.getaddrinfo

    def rebound(host: Any, *arguments: Any, **options: Any) -> Any:
        if host in (NAME, NAME.encode()):
            two.looked_up.append(NAME)
            return original("127.0.0.2", *arguments, **options)
        return original(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", rebound)
    yield two
    for server in (target, trap):
        server.close()


async def ask(kind: Any, url: str, path: str, **options: Any) -> Exchange:
    transport = open_transport(kind, TransportOptions(origin=parse_origin(url), **options))
    await transport.startup()
    try:
        exchange = Exchange()
        await transport.exchange(WireRequest("GET", path, {}), exchange, QUICK)
        return exchange
    finally:
        await transport.shutdown()


@pytest.mark.parametrize("kind", ["fast", "aiohttp"])
async def test_a_pinned_run_connects_to_the_judged_address_only(two: Two, kind: str) -> None:
    url = f"http://{NAME}:{two.port}"
    pinned = await ask(kind, url, "/", addresses=("127.0.0.1",))
    assert (pinned.status, bytes(pinned.body)) == (200, b"ok")
    assert f"host: {NAME}:{two.port}".encode() in two.heads[-1].lower()
    assert (two.trapped, two.looked_up) == (0, [])
    # The same without a pin falls into the trap: the test can fail.
    await ask(kind, url, "/")
    assert two.trapped > 0


@pytest.mark.parametrize("kind", ["fast", "aiohttp"])
async def test_a_redirect_to_elsewhere_is_an_answer_and_no_instruction(two: Two, kind: str) -> None:
    away = await ask(kind, f"http://{NAME}:{two.port}", "/away", addresses=("127.0.0.1",))
    assert away.status == 302
    assert two.trapped == 0


async def test_a_health_check_asks_the_judged_address_only_and_follows_nothing(two: Two) -> None:
    health = HealthClient()
    try:
        for path in ("/health", "/away"):
            said = await health.trouble(
                f"http://{NAME}:{two.port}{path}", any_answer=True, verify_tls=True,
                address="127.0.0.1",
            )  # fmt: skip
            assert said is None
            assert f"host: {NAME}:{two.port}".encode() in two.heads[-1].lower()
    finally:
        await health.close()
    assert (two.trapped, two.looked_up) == (0, [])


@pytest.mark.parametrize("kind", ["fast", "aiohttp"])
async def test_a_pinned_run_verifies_the_certificate_of_the_name(tmp_path: Path, kind: str) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(NAME).configure_cert(context)
    two = Two()
    server = await asyncio.start_server(two.serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    tls = TlsOptions(ca_file=str(tmp_path / "ca.pem"))
    right = await ask(kind, f"https://{NAME}:{port}", "/", addresses=("127.0.0.1",), tls=tls)
    wrong = await ask(kind, f"https://other.test:{port}", "/", addresses=("127.0.0.1",), tls=tls)
    server.close()
    assert right.status == 200
    assert wrong.failure is not None
    assert wrong.failure.category == "tls"
