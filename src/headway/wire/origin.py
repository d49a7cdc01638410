"""Where a target is: its URL taken apart once, for connecting and for the Host header."""

from __future__ import annotations

from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

from headway.core.errors import ConfigError

_DEFAULT_PORTS = {"http": 80, "https": 443}
_VALID = "valid: http://host:port, https://host, http+unix://%2Fpath%2Fto.sock/v1, unix:///path"


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """A server, and the path prefix under which its API lies."""

    scheme: str
    """`http` or `https`."""
    host: str
    port: int
    path: str = ""
    """Path prefix without a trailing slash; empty at the root."""
    unix_path: str | None = None
    """Socket file to connect to instead of host and port."""

    @property
    def is_tls(self) -> bool:
        return self.scheme == "https"

    @property
    def host_header(self) -> str:
        """The Host header's value: no port where it is the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """For people, without the path."""
        if self.unix_path is not None:
            return f"unix://{self.unix_path}"
        return f"{self.scheme}://{self.host_header}"


def parse_origin(url: str) -> Origin:
    """Take a target's URL apart.

    Args:
        url: `http`, `https`, `unix` (the whole path is the socket file) or `http+unix` (the
            percent-encoded socket file in the place of the host, then a path).

    Raises:
        ConfigError: it is none of these, or carries credentials, a query or a fragment.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"cannot read the target's URL ({error}); {_VALID}") from error
    if "@" in parts.netloc:
        raise ConfigError(
            "the target's URL carries credentials; give a key by api_key_env or api_key_file, "
            "or an Authorization header, so that it is kept out of reports"
        )
    if parts.query or parts.fragment:
        raise ConfigError(f"the target's URL ends in a query or fragment; {_VALID}")
    if parts.scheme in ("unix", "http+unix"):
        return _unix_origin(parts)
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise ConfigError(f"cannot read {url!r} as the target's URL; {_VALID}")
    return Origin(
        scheme=parts.scheme,
        host=_ascii_host(parts.hostname),
        port=_DEFAULT_PORTS[parts.scheme] if port is None else port,
        path=parts.path.rstrip("/"),
    )


def _unix_origin(parts: SplitResult) -> Origin:
    socket_file, path = unquote(parts.netloc), parts.path
    if parts.scheme == "unix":
        socket_file, path = unquote(parts.netloc + parts.path), ""
    if not socket_file.startswith("/"):
        raise ConfigError(f"a Unix socket needs an absolute path; {_VALID}")
    return Origin(
        scheme="http", host="localhost", port=80, path=path.rstrip("/"), unix_path=socket_file
    )


def _ascii_host(host: str) -> str:
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode()
    except UnicodeError as error:
        raise ConfigError(f"{host!r} is no host name ({error})") from error
