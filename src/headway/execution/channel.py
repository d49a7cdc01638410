"""The job process's end of its control socket: blocking, because the process does nothing else."""

from __future__ import annotations

import array
import os
import socket
import struct
import threading
from collections.abc import Callable

import msgspec

from headway.core.frames import encode_frame
from headway.execution.messages import FromJob, Start, encode

_HEADER = struct.Struct(">I")
_FIRST_BYTES = 64 * 1024
"""Received at once: an attempt is sent as one frame, and as a rule all of it is there."""


class JobChannel:
    """Receives `Start` with its descriptor, sends `FromJob`.

    Args:
        socket: The connected stream socket.
        shield: Runs a sending action so that SIGTERM cannot cut it in half.
    """

    def __init__(
        self, control: socket.socket, shield: Callable[[Callable[[], None]], None]
    ) -> None:
        self._socket = control
        self._shield = shield
        self._lock = threading.Lock()
        self._decoder = msgspec.msgpack.Decoder(Start)

    def receive(self) -> tuple[Start, int] | None:
        """Wait for the next attempt and its log descriptor; None when the supervisor hung up."""
        begun, descriptors = self._receive_begun()
        if len(begun) < _HEADER.size or not descriptors:
            for descriptor in descriptors:
                os.close(descriptor)
            return None
        body = self._receive_rest(_HEADER.unpack_from(begun)[0], begun[_HEADER.size :])
        if body is None:
            return None
        return self._decoder.decode(body), descriptors[0]

    def send(self, *messages: FromJob) -> None:
        """Send messages whole, in one go; may be called from any thread."""
        frames = b"".join([encode_frame(encode(message)) for message in messages])

        def action() -> None:
            with self._lock:
                self._socket.sendall(frames)

        self._shield(action)

    def fileno(self) -> int:
        return self._socket.fileno()

    def _receive_begun(self) -> tuple[bytes, list[int]]:
        """The frame as far as it is there, with its header, and the descriptors."""
        begun, descriptors = b"", array.array("i")
        space = socket.CMSG_SPACE(descriptors.itemsize)
        while len(begun) < _HEADER.size:
            data, ancillary, _, _ = self._socket.recvmsg(_FIRST_BYTES, space)
            for level, kind, content in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    descriptors.frombytes(content)
            if not data:
                break
            begun += data
        return begun, list(descriptors)

    def _receive_rest(self, count: int, begun: bytes) -> bytes | None:
        """The whole body, of which `begun` is there; None when the supervisor hung up."""
        if len(begun) == count:
            return begun
        buffer = bytearray(count)
        view, have = memoryview(buffer), len(begun)
        view[:have] = begun
        while have < count:
            received = self._socket.recv_into(view[have:])
            if received == 0:
                return None
            have += received
        return bytes(buffer)
