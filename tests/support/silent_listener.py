"""A listener that answers no more connection requests."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def silent_listener(host: str = "127.0.0.1", port: int = 0) -> Iterator[int]:
    """Its queue is full; gives its port. OSError: the address is not this host's."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind((host, port))
        listener.listen(0)
        address = listener.getsockname()
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(address)
        yield address[1]
