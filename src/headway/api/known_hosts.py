"""The names under which a server answers."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable

_HOST = re.compile(r"(\[(?P<number>[0-9a-f:.]{2,60})\]|(?P<name>[a-z0-9._-]{1,253}))(:[0-9]{1,5})?")


class KnownHosts:
    """The names under which a server answers.

    Args:
        bound: The address that it listens on.
        more: Further host names, without ports; those that a proxy in front has, for example.
    """

    def __init__(self, bound: str, more: Iterable[str] = ()) -> None:
        address = ipaddress.ip_address("127.0.0.1" if bound == "localhost" else bound)
        self._any_address = not address.is_loopback
        self._names = {"localhost", str(address), *(name.lower() for name in more)}
        if self._any_address:
            own = socket.gethostname().lower()
            self._names |= {own, own.partition(".")[0]}

    def has(self, host: str) -> bool:
        """Whether a `Host` header (with or without a port) names this server.

        Rebinding needs a name: on other addresses than loopback, any number is taken.
        """
        name = host_name(host)
        if name in self._names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or self._any_address


def host_name(host: str) -> str:
    """The name or number of a `Host` header; empty when it is none."""
    found = _HOST.fullmatch(host.lower())
    return "" if found is None else found["number"] or found["name"]
