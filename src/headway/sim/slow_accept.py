"""A listener that takes its connections late, one after the other."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable


class SlowAcceptor:
    """Accepts a connection, waits, serves it, and only then accepts the next.

    Args:
        listener: A listening, non-blocking socket; closed by `close`.
        make_protocol: Makes a connection's protocol.
        delay_s: How long each one waits.
        tls: For connections that speak TLS.
    """

    def __init__(
        self,
        listener: socket.socket,
        make_protocol: Callable[[], asyncio.Protocol],
        delay_s: float,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._listener = listener
        self._make_protocol = make_protocol
        self._delay_s = delay_s
        self._tls = tls
        self._task = asyncio.get_running_loop().create_task(self._accept())

    def close(self) -> None:
        """Stop accepting."""
        self._task.cancel()
        self._listener.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            accepted, _ = await loop.sock_accept(self._listener)
            await asyncio.sleep(self._delay_s)
            try:
                await loop.connect_accepted_socket(self._make_protocol, accepted, ssl=self._tls)
            except OSError:
                accepted.close()  # the client has left, or failed its handshake
