"""Length-prefixed frames over a stream: how Headway's processes talk to each other.

A frame is a four-byte big-endian length and that many bytes. A length, unlike a separator, cannot
be mistaken for payload (trap 41: a length byte equal to a separator broke framing).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from headway.core.errors import InternalError

_HEADER = struct.Struct(">I")
MAX_FRAME_BYTES = 64 * 1024 * 1024


def encode_frame(payload: bytes) -> bytes:
    """One frame holding `payload` (at most MAX_FRAME_BYTES)."""
    if len(payload) > MAX_FRAME_BYTES:
        raise InternalError(f"a frame of {len(payload)} bytes is over {MAX_FRAME_BYTES}")
    return _HEADER.pack(len(payload)) + payload


class FrameDecoder:
    """Collects bytes as they arrive and yields each complete frame's payload."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Add `data`; yield the payloads that are now complete, in order.

        Raises:
            InternalError: a length over MAX_FRAME_BYTES; the stream is broken for good.
        """
        self._buffer += data
        start = 0
        while len(self._buffer) - start >= _HEADER.size:
            (length,) = _HEADER.unpack_from(self._buffer, start)
            if length > MAX_FRAME_BYTES:
                raise InternalError(f"a frame announces {length} bytes, over {MAX_FRAME_BYTES}")
            end = start + _HEADER.size + length
            if len(self._buffer) < end:
                break
            yield bytes(self._buffer[start + _HEADER.size : end])
            start = end
        if start:
            del self._buffer[:start]

    @property
    def pending_bytes(self) -> int:
        """Bytes of a frame that is not complete yet."""
        return len(self._buffer)
