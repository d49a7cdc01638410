"""The socket that a server listens on."""

from __future__ import annotations

import errno
import ipaddress
import socket

from headway.core.errors import ConfigError

BACKLOG = 2048


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens on `host` and `port` (0: any free one).

    The port can be bound again at once after a server died with open connections (trap 19).

    Raises:
        ConfigError: the host is no address, or the port is taken.
    """
    address = address_of_host(host)
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    # With its protocol named: only then asyncio switches off Nagle's algorithm on what is accepted,
    # which else holds the second part of an answer back for 40 ms. (uvloop does so in any case.)
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((str(address), port))
    except OSError as error:
        listening.close()
        raise _not_bound(host, port, error) from error
    listening.listen(BACKLOG)
    listening.setblocking(False)
    return listening


def address_of_host(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The address that `host` names.

    Raises:
        ConfigError: it names none.
    """
    name = "127.0.0.1" if host == "localhost" else host
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        raise ConfigError(
            f"{host!r} is not an address; write --host 127.0.0.1, ::1, localhost, an address of"
            " this machine, or 0.0.0.0 for all of them"
        ) from None


def url_of(listening: socket.socket, scheme: str = "http") -> str:
    """The URL under which the socket answers."""
    host, port = listening.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _not_bound(host: str, port: int, error: OSError) -> ConfigError:
    if error.errno == errno.EADDRINUSE:
        return ConfigError(
            f"port {port} of {host} is taken by another program; choose another with --port"
            " (0 takes any free one)"
        )
    return ConfigError(f"cannot listen on {host} port {port}: {error.strerror}")
