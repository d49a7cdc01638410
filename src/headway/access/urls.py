"""Addresses of registered targets: what may be registered, and what it may resolve to.

A server that sends requests for its users can be aimed at what only it can reach: a cloud's
metadata service, a database on its own host, a printer. So a URL is taken apart by one strict
reader here, its name is resolved once, every address that comes out is judged, and the run connects
to exactly these addresses (a name that resolves otherwise a second later changes nothing).
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from headway.core.errors import ConfigError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[list[str]]]

MAX_URL = 2000
RESOLVE_S = 10.0
_PORTS = {"http": 80, "https": 443}
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f\\]")
_HOST_NAME = re.compile(
    r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*\Z"
)
_NUMBER = re.compile(r"(0x[0-9a-f]*|[0-9]+)\Z")
_PATH = re.compile(r"(/[A-Za-z0-9._~!$&'()*+,;=:@-]+)*/?\Z")
_DOTS = frozenset({".", ".."})


class Reach(StrEnum):
    """How far into networks of one's own a target lies."""

    PUBLIC = "public"
    PRIVATE = "private"
    """RFC 1918, unique local, carrier-grade NAT: other hosts of one's own."""
    LOOPBACK = "loopback"
    """The server's own host."""


_MAY_BE: dict[Reach, frozenset[Reach]] = {
    Reach.PUBLIC: frozenset({Reach.PUBLIC}),
    Reach.PRIVATE: frozenset({Reach.PUBLIC, Reach.PRIVATE}),
    Reach.LOOPBACK: frozenset({Reach.LOOPBACK}),
}

# Nothing to measure lives here, registered or not.
_NEVER = tuple(
    ipaddress.ip_network(each)
    for each in (
        "0.0.0.0/8",  # this host, unspecified
        "169.254.0.0/16",  # link-local, and most clouds' metadata
        "100.100.100.200/32",  # metadata of Alibaba Cloud
        "168.63.129.16/32",  # the platform address of Azure
        "192.0.0.0/24",  # protocol assignments, metadata of Oracle Cloud
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
        "::/128",
        "fe80::/10",  # link-local
        "fec0::/10",  # site-local, deprecated
        "ff00::/8",  # multicast
        "fd00:ec2::/32",  # metadata of AWS over IPv6
        "fd20:ce::/32",  # metadata of Google Cloud over IPv6
        "2001::/32",  # Teredo: an IPv4 address in disguise that cannot be judged
        "64:ff9b:1::/48",  # local translation: as above
    )
)
_PRIVATE = tuple(
    ipaddress.ip_network(each)
    for each in (
        "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "198.18.0.0/15",
        "fc00::/7",
    )
)  # fmt: skip
_LOOPBACK = tuple(ipaddress.ip_network(each) for each in ("127.0.0.0/8", "::1/128"))
# Networks whose addresses carry an IPv4 address, and the bits to its right.
_CARRIERS = (
    (ipaddress.ip_network("::ffff:0:0/96"), 0),
    (ipaddress.ip_network("::/96"), 0),
    (ipaddress.ip_network("::ffff:0:0:0/96"), 0),  # for stateless translators, RFC 2765
    (ipaddress.ip_network("64:ff9b::/96"), 0),
    (ipaddress.ip_network("2002::/16"), 80),
)


@dataclass(frozen=True, slots=True)
class TargetUrl:
    """A target's URL taken apart.

    Attributes:
        host: In lower case; an IPv6 address without brackets.
        path: Prefix without a trailing slash; empty at the root.
    """

    scheme: str
    host: str
    port: int
    path: str = ""

    @property
    def origin(self) -> str:
        """`scheme://host` with the port where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + (
            "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        )

    @property
    def text(self) -> str:
        """The URL in its one normal form."""
        return self.origin + self.path

    def contains(self, other: TargetUrl) -> bool:
        """Whether `other` is the same server, at this path or below."""
        same = (self.scheme, self.host, self.port) == (other.scheme, other.host, other.port)
        return same and (other.path == self.path or other.path.startswith(f"{self.path}/"))


def read_target_url(text: str) -> TargetUrl:
    """Take a target's URL apart, as strictly as nobody's parser could read it differently.

    Raises:
        ConfigError: one sentence that says what is wrong with it.
    """
    if len(text) > MAX_URL or not text.isascii() or _FORBIDDEN.search(text):
        raise ConfigError(
            "the URL has a blank, a control character, a backslash, or a character beyond ASCII "
            "(write a host name in its xn-- form)"
        )
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"the URL cannot be read: {error}") from None
    if parts.scheme not in _PORTS:
        raise ConfigError("the URL of a target begins with http:// or https://")
    if "@" in parts.netloc:
        raise ConfigError(
            "the URL carries credentials; keep them as a secret and name that (default secret)"
        )
    if "?" in text or "#" in text:
        raise ConfigError("the URL of a target has no query and no fragment")
    if port == 0 or parts.netloc.endswith(":"):
        raise ConfigError("the URL's port is from 1 to 65535")
    return TargetUrl(
        scheme=parts.scheme,
        host=_read_host(parts.netloc, parts.hostname or ""),
        port=_PORTS[parts.scheme] if port is None else port,
        path=_read_path(parts.path),
    )


def judge(address: Address) -> Reach | None:
    """Where an address lies; None: nothing may ever be sent there."""
    address = _carried(address)
    if any(address in network for network in _NEVER):
        return None
    if any(address in network for network in _LOOPBACK):
        return Reach.LOOPBACK
    return Reach.PRIVATE if any(address in network for network in _PRIVATE) else Reach.PUBLIC


def reach_of(host: str, addresses: Iterable[str]) -> Reach:
    """Where a host lies that is being registered.

    Raises:
        ConfigError: one of its addresses is forbidden, or they lie on both sides of loopback.
    """
    found = {_judged(host, address) for address in addresses}
    if Reach.LOOPBACK in found and len(found) > 1:
        raise ConfigError(f"{host} is both this server's own host and another one")
    return next((each for each in (Reach.LOOPBACK, Reach.PRIVATE) if each in found), Reach.PUBLIC)


def check_addresses(host: str, addresses: Iterable[str], allowed: Reach) -> None:
    """Refuse addresses that a registered host may not have.

    Raises:
        ConfigError: naming the address, when one is forbidden or nearer than was registered: the
            name may have been rebound.
    """
    for address in addresses:
        found = _judged(host, address)
        if found not in _MAY_BE[allowed]:
            raise ConfigError(
                f"{host} is registered as {allowed.value} but resolves to {address}, which is "
                f"{found.value}; an administrator can register it anew if that is right"
            )


async def resolve(host: str, port: int) -> list[str]:
    """Every address of a host, in the resolver's order.

    Raises:
        OSError: it does not resolve, or not in time.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(RESOLVE_S):
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in found))


async def pinned_addresses(
    url: TargetUrl, allowed: Reach, resolver: Resolve = resolve
) -> tuple[str, ...]:
    """Resolve a target's host once and judge all that comes out: connect to these and no others.

    Raises:
        ConfigError: the host does not resolve, or to an address that is not allowed.
    """
    try:
        addresses = await resolver(url.host, url.port)
    except OSError:
        raise ConfigError(f"the name {url.host} does not resolve") from None
    if not addresses:
        raise ConfigError(f"the name {url.host} has no address")
    check_addresses(url.host, addresses, allowed)
    return tuple(addresses)


def _judged(host: str, address: str) -> Reach:
    found = judge(ipaddress.ip_address(address.partition("%")[0]))
    if found is None:
        where = "" if host == address else f"resolves to {address}, which "
        raise ConfigError(
            f"{host} {where}is a link-local, metadata, multicast or unspecified address; nothing "
            "may be sent there"
        )
    return found


def _carried(address: Address) -> Address:
    """The IPv4 address inside an IPv6 one, where there is one: it is where packets end up."""
    if isinstance(address, ipaddress.IPv4Address) or int(address) <= 1:
        return address
    for network, shift in _CARRIERS:
        if address in network:
            return ipaddress.IPv4Address((int(address) >> shift) & 0xFFFFFFFF)
    return address


def _read_host(netloc: str, host: str) -> str:
    if netloc.startswith("["):
        try:
            # Python takes a zone along; a zone names an interface of this host.
            return str(ipaddress.IPv6Address(host.replace("%", "no zone")))
        except ValueError:
            raise ConfigError("the URL's host is no IPv6 address (zones are not taken)") from None
    host = host.removesuffix(".")
    if _NUMBER.match(host.rpartition(".")[2]):
        # What the C library reads as an address in decimal, octal, hexadecimal or short form.
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            raise ConfigError("write an IPv4 address as four decimal numbers: 10.0.0.7") from None
    if not _HOST_NAME.match(host) or len(host) > 253:
        raise ConfigError("the URL's host is no host name")
    return host


def _read_path(path: str) -> str:
    if not _PATH.match(path) or _DOTS & set(path.split("/")):
        raise ConfigError(
            "the URL's path is made of plain segments, without '..', '//' and percent signs"
        )
    return path.rstrip("/")
