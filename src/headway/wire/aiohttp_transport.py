"""The aiohttp transport: for proxies, and as a second opinion on the fast one.

It fills the same exchange with limits of the library below:

- A read is stamped when the event loop hands its bytes over, not at the socket.
- `connect_ns` includes the TLS handshake.
- It tells of a reply when its head is whole: a request may be sent again after some bytes of one.
- A malformed chunk in a later read is noticed by the deadline only.
"""

from __future__ import annotations

import io
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace

import aiohttp
from aiohttp import http_exceptions
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from headway.core.clock import monotonic_ns
from headway.core.errors import ConfigError, InternalError
from headway.wire import texts
from headway.wire.connector import connect_failure_text
from headway.wire.content_coding import make_decompressor
from headway.wire.exchange import Exchange, Timeouts, WireCategory, WireFailure, WireRequest
from headway.wire.flight import Flight
from headway.wire.head import check_head
from headway.wire.options import TransportOptions
from headway.wire.origin import Origin
from headway.wire.redaction import redact_url
from headway.wire.tls import make_ssl_context, tls_failure_text

# aiohttp would add these by itself; what is sent is what the backend gave, on either transport.
_AUTOMATIC = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
# As long as the target keeps a connection open, we do: closing it is the target's decision.
_KEEP_ALIVE_S = 86_400.0
_READ_BUFFER_BYTES = 256 * 1024
_LARGE_BODY_BYTES = 1024 * 1024


class AiohttpTransport:
    """A client session to one target, for one event loop."""

    def __init__(self, options: TransportOptions) -> None:
        self._options = options
        self._session: aiohttp.ClientSession | None = None

    async def startup(self) -> None:
        options = self._options
        if options.proxy is not None:
            _check_proxy(options)
        context = make_ssl_context(options.tls) if options.origin.is_tls else None
        self._session = aiohttp.ClientSession(
            connector=_connector(options, context),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_AUTOMATIC,
            trace_configs=[_tracing()],
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            read_bufsize=_READ_BUFFER_BYTES,
            auto_decompress=False,  # It takes a body that was cut short for a whole one.
            # With HTTP_PROXY in the environment a run would measure something else, unsaid.
            trust_env=False,
        )

    async def exchange(self, request: WireRequest, exchange: Exchange, timeouts: Timeouts) -> None:
        check_head(request.method, request.path, request.headers)
        flight = Flight(exchange, timeouts)
        await self._attempt(request, flight)
        if exchange.failure is not None and flight.may_be_sent_again():
            flight.begin_again()
            await self._attempt(request, flight)

    async def shutdown(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _attempt(self, request: WireRequest, flight: Flight) -> None:
        exchange = flight.exchange
        try:
            async with flight.deadlines():
                await self._carry(request, flight)
        except TimeoutError:
            exchange.failure = WireFailure("timeout", flight.passed_deadline())
        except (aiohttp.ClientError, http_exceptions.HttpProcessingError, OSError) as error:
            exchange.failure = _failure(error, self._options)

    async def _carry(self, request: WireRequest, flight: Flight) -> None:
        if self._session is None:
            raise InternalError("exchange() before startup()")
        if self._session.closed:
            raise aiohttp.ServerDisconnectedError(texts.SHUT_DOWN)
        response = await self._session.request(
            request.method,
            _url(self._options.origin, request.path),
            data=_data(request.body),
            headers=request.headers,
            allow_redirects=False,
            proxy=self._options.proxy,
            trace_request_ctx=flight,
        )
        try:
            await self._read(response, flight)
        except BaseException:
            response.close()
            raise

    async def _read(self, response: aiohttp.ClientResponse, flight: Flight) -> None:
        exchange = flight.exchange
        flight.read_head(response.status, dict(response.raw_headers))
        try:
            await self._read_body(response, flight)
        except ValueError as error:
            exchange.failure = WireFailure("protocol", str(error))
            response.close()
        else:
            exchange.done_ns = monotonic_ns()

    async def _read_body(self, response: aiohttp.ClientResponse, flight: Flight) -> None:
        """Raises ValueError with a sentence when the body cannot be used."""
        max_bytes = self._options.max_body_bytes
        decompressor = make_decompressor(flight.exchange.raw_headers, max_bytes)
        async for piece in response.content.iter_any():
            plain = piece if decompressor is None else decompressor.decompress(piece)
            if plain:
                flight.read_body(plain)
            if flight.exchange.body_bytes > max_bytes:
                raise ValueError(texts.too_large(max_bytes))
        if decompressor is not None and not decompressor.is_whole:
            raise ValueError(texts.CODING_CUT)


def _connector(options: TransportOptions, context: ssl.SSLContext | None) -> aiohttp.BaseConnector:
    limit = options.max_connections or 0
    origin = options.origin
    if origin.unix_path is not None:
        return aiohttp.UnixConnector(origin.unix_path, limit=limit, keepalive_timeout=_KEEP_ALIVE_S)
    return aiohttp.TCPConnector(
        limit=limit,
        ssl=context if context is not None else True,
        keepalive_timeout=_KEEP_ALIVE_S,
        ttl_dns_cache=None,
        resolver=_FixedResolver(options.addresses) if options.addresses else None,
    )


class _FixedResolver(AbstractResolver):
    """Gives the addresses that somebody else found out; asks nobody."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._addresses
        ]

    async def close(self) -> None:
        """Nothing is open."""


def _data(body: bytes) -> bytes | io.BytesIO | None:
    # The library warns of larger bytes, because it writes them in one go; a file it does not.
    return io.BytesIO(body) if len(body) > _LARGE_BODY_BYTES else body or None


def _url(origin: Origin, path: str) -> URL:
    base = "http://localhost" if origin.unix_path is not None else origin.url
    return URL(base + path, encoded=True)


def _check_proxy(options: TransportOptions) -> None:
    assert options.proxy is not None
    try:
        proxy = URL(options.proxy)
    except ValueError as error:
        raise ConfigError("cannot read the proxy's URL; valid: http://host:port") from error
    if proxy.scheme not in ("http", "https") or not proxy.host:
        raise ConfigError(
            f"cannot use {redact_url(options.proxy)} as a proxy; valid: http://host:port"
        )
    if options.origin.unix_path is not None:
        raise ConfigError("a Unix socket is not reached through a proxy; leave one of them out")


def _tracing() -> aiohttp.TraceConfig:
    """Lets each request's flight know what aiohttp does for it."""

    def note(method: str) -> Callable[[object, SimpleNamespace, object], Awaitable[None]]:
        async def called(_: object, context: SimpleNamespace, __: object) -> None:
            getattr(context.trace_request_ctx, method)()

        return called

    config = aiohttp.TraceConfig()
    config.on_connection_queued_start.append(note("queued"))
    config.on_connection_queued_end.append(note("dequeued"))
    config.on_connection_create_start.append(note("connecting"))
    config.on_connection_create_end.append(note("connected"))
    config.on_connection_reuseconn.append(note("reused"))
    config.on_request_headers_sent.append(note("sent"))
    return config


def _failure(error: Exception, options: TransportOptions) -> WireFailure:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return WireFailure("tls", _tls_text(error.certificate_error))
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return WireFailure("tls", _tls_text(error.os_error))
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return WireFailure("connect", f"the proxy refuses the connection (HTTP {error.status})")
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return WireFailure("connect", "no connection to the proxy")
    if isinstance(error, aiohttp.ClientConnectorError):
        return WireFailure("connect", connect_failure_text(options.origin, error.os_error))
    category, text = _broken_reply(error)
    return WireFailure(category, text)


def _broken_reply(error: Exception) -> tuple[WireCategory, str]:
    if isinstance(error, aiohttp.ClientPayloadError):
        cause = error.__cause__
        # A cut body and a malformed chunk are the same exception; only the cut one says this.
        if "Not enough data" in str(cause) or not isinstance(cause, http_exceptions.BadHttpMessage):
            was_reset = "ConnectionResetError" in str(error)
            return "disconnected", texts.RESET_EARLY if was_reset else texts.CLOSED_EARLY
        return "protocol", "the reply is not valid HTTP/1.1 (malformed body)"
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return "disconnected", texts.RESET_EARLY
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "disconnected", texts.CLOSED_EARLY
    if isinstance(error, OSError):
        return "disconnected", texts.RESET_EARLY
    return "protocol", "the reply is not valid HTTP/1.1"


def _tls_text(error: Exception) -> str:
    return tls_failure_text(error) if isinstance(error, ssl.SSLError) else "the handshake failed"
