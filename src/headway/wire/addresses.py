"""The addresses of a target's host, looked up once.

A look-up before each connection would measure the resolver; none at all would miss that a host
moved. So the first one is kept until none of its addresses connects any more.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

from aiohappyeyeballs import AddrInfoType


class AddressBook:
    """Resolves one host, and says which address to try first.

    Args:
        spread: Begin one address further with each connection, so that load goes to every
            address of the name; otherwise stay with the one that connected first.
        fixed: The host's addresses, found out by somebody else; its name is then never looked up.
    """

    def __init__(self, host: str, port: int, spread: bool, fixed: Sequence[str] = ()) -> None:
        self._host = host
        self._port = port
        self._spread = spread
        self._fixed = fixed
        self._known: list[AddrInfoType] = []
        self._turn = 0
        self._lookup = asyncio.Lock()

    async def candidates(self) -> list[AddrInfoType]:
        """Addresses in the order of trying.

        Raises:
            OSError: the name does not resolve.
        """
        if not self._known:
            # One look-up however many connections start together.
            async with self._lookup:
                if not self._known:
                    self._known = await self._resolve()
        if not self._spread:
            return self._known
        first = self._turn % len(self._known)
        self._turn += 1
        return self._known[first:] + self._known[:first]

    def pin(self, peer: object) -> None:
        """Try the address that just connected first from now on."""
        if not self._spread and self._known and self._known[0][4] != peer:
            self._known = sorted(self._known, key=lambda info: info[4] != peer)

    def forget(self) -> None:
        """None of the addresses connects: look the name up again next time."""
        self._known = []

    async def _resolve(self) -> list[AddrInfoType]:
        if self._fixed:
            return [info for address in self._fixed for info in _numeric(address, self._port)]
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(
            self._host, self._port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )
        return list(found)


def _numeric(address: str, port: int) -> list[AddrInfoType]:
    """An address that is one already; asks nobody."""
    return list(
        socket.getaddrinfo(
            address,
            port,
            type=socket.SOCK_STREAM,
            proto=socket.IPPROTO_TCP,
            flags=socket.AI_NUMERICHOST,
        )
    )
