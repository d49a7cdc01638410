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
        header, descriptors = self._receive_header()
        if len(header) < _HEADER.size or not descriptors:
            for descriptor in descriptors:
                os.close(descriptor)
            return None
        body = self._receive_exactly(_HEADER.unpack(header)[0])
        if body is None:
            return None
        return self._decoder.decode(body), descriptors[0]

    def send(self, message: FromJob) -> None:
        """Send one message whole; may be called from any thread."""
        frame = encode_frame(encode(message))

        def action() -> None:
            with self._lock:
                self._socket.sendall(frame)

        self._shield(action)

    def fileno(self) -> int:
        return self._socket.fileno()

    def _receive_header(self) -> tuple[bytes, list[int]]:
        header, descriptors = b"", array.array("i")
        space = socket.CMSG_SPACE(descriptors.itemsize)
        while len(header) < _HEADER.size:
            data, ancillary, _, _ = self._socket.recvmsg(_HEADER.size - len(header), space)
            for level, kind, content in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    descriptors.frombytes(content)
            if not data:
                break
            header += data
        return header, list(descriptors)

    def _receive_exactly(self, count: int) -> bytes | None:
        buffer = bytearray(count)
        view, have = memoryview(buffer), 0
        while have < count:
            received = self._socket.recv_into(view[have:])
            if received == 0:
                return None
            have += received
        return bytes(buffer)
