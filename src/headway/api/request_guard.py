"""Refuses requests that a page of another site makes a browser send.

A server on loopback trusts whoever reaches it, and every page on the internet reaches it through
the browser of its reader. Two ways are closed here. A name of another site that is made to point
at 127.0.0.1 (DNS rebinding) makes the browser take this server for that site: the `Host` header
still has the site's name, and is refused. A form or `fetch` of another site can send a POST without
asking first: browsers say where such a request comes from, and it is refused.

Programs that are no browsers send neither `Origin` nor `Sec-Fetch-Site` and are not concerned.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from headway.api.known_hosts import KnownHosts, host_name
from headway.api.problems import problem_response

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_MAX_KNOWN = 100
_DEFAULT_PORTS = {"http": "80", "https": "443"}


class RequestGuard:
    """Wraps the application.

    Args:
        app: What answers.
        hosts: The server's own names.
    """

    def __init__(self, app: ASGIApp, hosts: KnownHosts) -> None:
        self._app = app
        self._hosts = hosts
        self._known: set[bytes] = set()  # checked already

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            refusal = self._refusal(scope)
            if refusal is not None:
                response = problem_response(*refusal, request=Request(scope))
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1:
            return 400, "a request names the server in one Host header"
        if not self._is_known(hosts[0]):
            name = _printable(hosts[0])
            return 421, (
                f"this server does not answer for the host {name!r};"
                f" if it should, start it with --allowed-host {name}"
            )
        if scope["method"] not in SAFE_METHODS and _is_from_elsewhere(scope, hosts[0]):
            return 403, "this request was sent by a page of another site"
        return None

    def _is_known(self, host: bytes) -> bool:
        if host in self._known:
            return True
        known = self._hosts.has(host.decode("latin-1"))
        if known and len(self._known) < _MAX_KNOWN:
            self._known.add(host)
        return known


def _is_from_elsewhere(scope: Scope, host: bytes) -> bool:
    """Whether a browser says that a page of another site sent this request.

    `Sec-Fetch-Site` decides where it is sent: no script can set it, and it holds also behind a
    proxy that changes `Host`. Browsers leave it out on plain http to anything but loopback.
    """
    origin = None
    for name, value in scope["headers"]:
        if name == b"sec-fetch-site":
            return value not in (b"same-origin", b"none")
        if name == b"origin":
            origin = value
    if origin is None:
        return False
    return not _is_same(origin.decode("latin-1"), scope["scheme"], host.decode("latin-1"))


def _is_same(origin: str, scheme: str, host: str) -> bool:
    """Whether an origin is this server's, which answers by `scheme` under `host`.

    An `https` page in front of plain http is one behind a proxy that nobody told us of. The other
    way round it is a page that somebody put into the way.
    """
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    if scheme == "https" and parts.scheme != "https":
        return False
    port = _DEFAULT_PORTS.get(parts.scheme, "")
    ours = host.lower().removesuffix(f":{port}")
    return bool(ours) and parts.netloc.lower().removesuffix(f":{port}") == ours


def _printable(host: bytes) -> str:
    return host_name(host.decode("latin-1")) or "(unreadable)"
