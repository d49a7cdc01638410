"""One end of the socket pair between the parent and a worker: framed messages, bounded buffers.

Reading and writing fail apart: when the peer is dead, what it had written before is still read to
its end, and only then is the channel closed. (A stream transport drops unread data on the first
failed write, and finished requests would be recorded as lost.)
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from headway.core.errors import InternalError
from headway.core.frames import FrameDecoder, encode_frame

_READ_BYTES = 256 * 1024
HIGH_WATER_BYTES = 4 * 1024 * 1024
"""Over this many unsent bytes a sender should wait; a worker's slots do (trap 40)."""


class Channel:
    """Sends and receives frames on the running loop until the peer closes."""

    def __init__(
        self,
        sock: socket.socket,
        on_message: Callable[[bytes], None],
        on_closed: Callable[[], None],
    ) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._on_message = on_message
        self._on_closed = on_closed
        self._loop = asyncio.get_running_loop()
        self._decoder = FrameDecoder()
        self._unsent = bytearray()
        self._drained: asyncio.Event = asyncio.Event()
        self._drained.set()
        self._closed = asyncio.Event()
        self._loop.add_reader(sock.fileno(), self._read)

    @property
    def is_closed(self) -> bool:
        """True after the peer closed or `close` was called."""
        return self._closed.is_set()

    async def wait_closed(self) -> None:
        """Wait until everything that the peer sent was read and it has closed."""
        await self._closed.wait()

    @property
    def over_high_water(self) -> bool:
        """Whether the peer reads too slowly for what is sent."""
        return len(self._unsent) > HIGH_WATER_BYTES

    def send(self, payload: bytes) -> None:
        """Queue one frame; what the socket takes at once is written at once."""
        if self.is_closed:
            return
        was_empty = not self._unsent
        self._unsent += encode_frame(payload)
        if was_empty:
            self._write()

    async def wait_drained(self) -> None:
        """Wait until everything sent so far was taken by the socket, or the peer is gone."""
        await self._drained.wait()

    def close(self) -> None:
        """Close at once; safe to call twice. `on_closed` is not called."""
        if self.is_closed:
            return
        self._closed.set()
        self._loop.remove_reader(self._sock.fileno())
        self._stop_writing()
        self._sock.close()

    def _read(self) -> None:
        try:
            data = self._sock.recv(_READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._peer_closed()
            return
        try:
            for payload in self._decoder.feed(data):
                self._on_message(payload)
                if self.is_closed:
                    return
        except InternalError:
            self._peer_closed()  # Broken framing cannot be repaired: as good as a dead peer.

    def _write(self) -> None:
        try:
            sent = self._sock.send(self._unsent)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self._stop_writing()  # The reader will find the end of what the peer wrote.
            return
        del self._unsent[:sent]
        if not self._unsent:
            self._stop_writing()
        elif self._drained.is_set():
            self._drained.clear()
            self._loop.add_writer(self._sock.fileno(), self._write)

    def _stop_writing(self) -> None:
        self._unsent.clear()
        if not self._drained.is_set():
            self._loop.remove_writer(self._sock.fileno())
            self._drained.set()

    def _peer_closed(self) -> None:
        self.close()
        self._on_closed()
