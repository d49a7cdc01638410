"""The truth log: what really happened, by the server's own clock.

Each exchange is one JSON line, encoded when it ends, so that writing the file is one call for many
lines and never takes long enough to delay a token.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

_FLUSH_BYTES = 1024 * 1024


class Truth(msgspec.Struct, kw_only=True):
    """One exchange. Times are nanoseconds on this host's monotonic clock."""

    ident: str
    """The simulated server's own identifier, part of the reply's `id`."""
    request_id: str | None
    """The client's `x-request-id`, where it sent one."""
    path: str
    status: int
    arrival_ns: int
    """When the last byte of the request had been read."""
    first_token_ns: int | None = None
    """When the first token was handed to the socket; None for replies in one piece."""
    end_ns: int | None = None
    """When the last byte was handed to the socket, or the exchange ended otherwise."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    outcome: str = "open"
    """completed, refused, cut, error_event, client_left or shutdown."""


class TruthLog:
    """Appends to a file; without one, it forgets."""

    def __init__(self, path: Path | None) -> None:
        self._fd: int | None = None
        if path is not None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._fd = os.open(path, flags, 0o644)
        self._encoder = msgspec.json.Encoder()
        self._buffer = bytearray()

    def add(self, truth: Truth) -> None:
        """Keep an exchange that has ended."""
        if self._fd is None:
            return
        self._buffer += self._encoder.encode(truth)
        self._buffer += b"\n"
        if len(self._buffer) >= _FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand everything so far to the operating system."""
        if self._fd is None:
            return
        while self._buffer:
            written = os.write(self._fd, self._buffer)
            del self._buffer[:written]

    def close(self) -> None:
        """Flush and close; safe to call twice."""
        self.flush()
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
