"""Targets behind a forward proxy; the aiohttp transport is taken for them by itself."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
import trustme

from headway.core.errors import ConfigError
from headway.wire.exchange import Exchange, Timeouts, WireRequest
from headway.wire.options import TransportOptions
from headway.wire.origin import parse_origin
from headway.wire.tls import TlsOptions
from headway.wire.transport import open_transport

LIMITS = Timeouts(connect_s=5, total_s=10)


class ForwardProxy:
    """Forwards absolute-form requests and opens CONNECT tunnels."""

    def __init__(self, refusal: bytes = b"") -> None:
        self.seen: list[str] = []
        self._refusal = refusal
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            line, _, rest = head.partition(b"\r\n")
            self.seen.append(line.decode())
            if self._refusal:
                writer.write(self._refusal)
                return
            method, target, version = line.split(b" ")
            parts = urlsplit((b"//" + target if method == b"CONNECT" else target).decode())
            upstream = await asyncio.open_connection(parts.hostname, parts.port)
            if method == b"CONNECT":
                writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            else:
                upstream[1].write(
                    b" ".join([method, parts.path.encode(), version]) + b"\r\n" + rest
                )
            await asyncio.gather(pump(reader, upstream[1]), pump(upstream[0], writer))
        finally:
            writer.close()
            self._tasks.discard(task)


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
    finally:
        writer.close()


@pytest.fixture
async def proxy() -> AsyncIterator[ForwardProxy]:
    forward = ForwardProxy()
    yield forward
    await forward.close()


async def through(proxy_url: str, url: str, **options: Any) -> Exchange:
    transport = open_transport(
        "fast", TransportOptions(origin=parse_origin(url), proxy=proxy_url, **options)
    )
    await transport.startup()
    exchange = Exchange()
    await transport.exchange(WireRequest("POST", "/x", {}, b"body"), exchange, LIMITS)
    await transport.shutdown()
    return exchange


async def test_plain_http_goes_through_the_proxy(
    scripted: Any, play: SimpleNamespace, proxy: ForwardProxy
) -> None:
    server = await scripted([[play.whole(b"via")]])
    exchange = await through(await proxy.start(), server.url)
    assert (exchange.failure, exchange.body) == (None, b"via")
    assert proxy.seen == [f"POST {server.url}/x HTTP/1.1"]
    assert server.requests[0][1] == b"body"


async def test_https_goes_through_a_tunnel_and_is_verified(
    scripted: Any, play: SimpleNamespace, proxy: ForwardProxy, tmp_path: Path
) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    ca_file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    server = await scripted([[play.whole(b"sealed")]], tls=context)
    proxy_url = await proxy.start()
    exchange = await through(proxy_url, server.url, tls=TlsOptions(ca_file=str(ca_file)))
    assert (exchange.failure, exchange.body) == (None, b"sealed")
    assert proxy.seen == [f"CONNECT {server.url.removeprefix('https://')} HTTP/1.1"]
    refused = await through(proxy_url, server.url)
    assert refused.failure is not None
    assert refused.failure.category == "tls"


async def test_a_proxy_that_refuses_says_so_without_its_password() -> None:
    refusing = ForwardProxy(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
    url = (await refusing.start()).replace("http://", "http://user:secret@")
    exchange = await through(url, "https://target.invalid")
    await refusing.close()
    assert exchange.failure is not None
    assert exchange.failure.category == "connect"
    assert "407" in exchange.failure.message
    assert "secret" not in exchange.failure.message


async def test_a_proxy_that_is_not_there() -> None:
    exchange = await through("http://127.0.0.1:1", "http://target.invalid")
    assert exchange.failure is not None
    assert exchange.failure.message == "no connection to the proxy"


async def test_what_is_no_proxy_is_refused_without_showing_its_password() -> None:
    with pytest.raises(ConfigError, match="proxy") as refused:
        await through("ftp://user:secret@host", "http://target.invalid")
    assert "secret" not in str(refused.value)
