"""The proxies that a server believes."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from headway.core.errors import ConfigError


class TrustedProxies:
    """Addresses and networks whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed.

    Args:
        named: Addresses, or networks such as 10.1.0.0/16.

    Raises:
        ConfigError: one is neither, or is everybody.
    """

    def __init__(self, named: Iterable[str] = ()) -> None:
        self.names = tuple(named)
        self._networks = [_network(name) for name in self.names]

    def __bool__(self) -> bool:
        return bool(self._networks)

    def __contains__(self, address: object) -> bool:
        try:
            found = ipaddress.ip_address(str(address))
        except ValueError:
            return False
        return any(found in network for network in self._networks)


def _network(name: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        network = ipaddress.ip_network(name)
    except ValueError:
        raise ConfigError(
            f"--trusted-proxy {name!r} is no address and no network; write 127.0.0.1 or 10.1.0.0/16"
        ) from None
    if network.prefixlen == 0:
        raise ConfigError(f"--trusted-proxy {name} would believe everybody; name the proxy alone")
    return network
