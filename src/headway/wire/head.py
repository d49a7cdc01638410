"""Request heads, rendered once for each (method, path, headers) and kept."""

from __future__ import annotations

import re
from collections.abc import Mapping

from headway.core.errors import ConfigError
from headway.wire.exchange import WireRequest

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_TARGET = re.compile(r"/[\x21-\x7e]*|\*")
_OWNED = frozenset({"host", "connection", "content-length", "transfer-encoding"})
_BODILESS = frozenset({"GET", "HEAD", "OPTIONS", "DELETE", "TRACE"})
_MAX_CACHED = 256


def check_head(method: str, path: str, headers: Mapping[str, str]) -> None:
    """Refuse what would break the request's framing or say a thing twice.

    Raises:
        ConfigError: a name or value that HTTP does not allow, or a header the transport owns.
    """
    if not _TOKEN.fullmatch(method):
        raise ConfigError(f"{method!r} is no HTTP method")
    if not _TARGET.fullmatch(path):
        raise ConfigError(f"{path!r} is no request path: it starts with / and has no spaces")
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise ConfigError(f"{name!r} is no header name")
        if not _VALUE.fullmatch(value):
            raise ConfigError(f"the value of header {name} has a line break or control character")
        if name.lower() in _OWNED:
            raise ConfigError(f"header {name} is set by the transport and cannot be given")


class RequestHead:
    """All of a request but its length and its body."""

    __slots__ = ("_is_bodiless", "_start")

    def __init__(self, start: bytes, is_bodiless: bool) -> None:
        self._start = start
        self._is_bodiless = is_bodiless

    def with_body(self, body: bytes) -> bytes:
        """The bytes to write."""
        if body or not self._is_bodiless:
            return b"%bContent-Length: %d\r\n\r\n%b" % (self._start, len(body), body)
        return self._start + b"\r\n"


class HeadCache:
    """Renders whole requests; only Content-Length and the body differ between like ones.

    Headers are told apart by identity, because hashing them for each request would cost more than
    writing them: whoever sends a mapping must not change it afterwards.
    """

    def __init__(self, host_header: str) -> None:
        self._host = host_header
        self._heads: dict[tuple[str, str, int], tuple[Mapping[str, str], RequestHead]] = {}

    def render(self, request: WireRequest) -> bytes:
        """The bytes to write.

        Raises:
            ConfigError: the request cannot be written as HTTP/1.1.
        """
        return self.head(request).with_body(request.body)

    def head(self, request: WireRequest) -> RequestHead:
        """The head of a request; raises as `render`."""
        known = self._heads.get((request.method, request.path, id(request.headers)))
        return known[1] if known is not None else self._remember(request)

    def _remember(self, request: WireRequest) -> RequestHead:
        method, path, headers = request.method, request.path, request.headers
        check_head(method, path, headers)
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self._host}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = RequestHead(("\r\n".join(lines) + "\r\n").encode("utf-8"), method in _BODILESS)
        if len(self._heads) >= _MAX_CACHED:
            self._heads.clear()
        # The mapping is kept beside its head so that its id is not given to another one.
        self._heads[method, path, id(headers)] = (headers, head)
        return head
