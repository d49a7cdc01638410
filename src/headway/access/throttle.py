"""How often an address may show a wrong token: a few times, then once in a while."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from dataclasses import dataclass

from headway.core.clock import ns_from_s, s_from_ns

_MAX_ADDRESSES = 10_000


@dataclass(frozen=True)
class ThrottleSettings:
    """The limit of one address.

    Attributes:
        burst: Failures in a row that cost nothing.
        per_failure_s: After those, one more is allowed each time so many seconds have passed.
    """

    burst: int = 10
    per_failure_s: float = 6.0


class FailureThrottle:
    """Counts failures by address, in bounded memory: the longest silent addresses are forgotten.

    Kept as the moment at which an address's failures are all forgiven (a leaky bucket). Networks of
    IPv6 count as one address: whoever has one of their addresses has them all.
    """

    def __init__(self, settings: ThrottleSettings | None = None) -> None:
        settings = settings or ThrottleSettings()
        self._cost_ns = ns_from_s(settings.per_failure_s)
        self._depth_ns = self._cost_ns * settings.burst
        self._forgiven_ns: OrderedDict[str, int] = OrderedDict()

    def wait_s(self, address: str, now_ns: int) -> float:
        """How long the address has to wait before it may try again; 0: not at all."""
        full_ns = self._forgiven_ns.get(_network(address), 0) - now_ns
        return max(0.0, s_from_ns(full_ns - self._depth_ns + self._cost_ns))

    def failed(self, address: str, now_ns: int) -> None:
        """Note one more failure."""
        network = _network(address)
        before_ns = max(now_ns, self._forgiven_ns.pop(network, 0))
        self._forgiven_ns[network] = before_ns + self._cost_ns
        if len(self._forgiven_ns) > _MAX_ADDRESSES:
            self._forgiven_ns.popitem(last=False)


def _network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)  # all of IPv4 lies in one network of these
    return str(ipaddress.ip_network((int(parsed), 64), strict=False))
