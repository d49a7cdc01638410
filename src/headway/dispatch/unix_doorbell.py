"""Doorbells between processes of one host: a datagram socket for each listening process."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import secrets
import socket

from headway.core.statedir import StateDir
from headway.dispatch.doorbell import Bell, Board, Gatherer
from headway.dispatch.socket_dir import SocketDir

_log = logging.getLogger(__name__)

_MAX_DATAGRAM = 4096
_MAX_READS = 256
"""Datagrams taken from the socket in one turn of the event loop."""
_SUFFIX = ".bell"


class UnixDoorbell:
    """Implements `Doorbell` with a socket under the state directory's `run/bells`.

    A ring is sent to every socket there but one's own, without blocking: when a listener's buffer
    is full it is awake already. The socket of a dead process refuses, and is removed by whoever
    finds out, so that nothing piles up (trap 20).
    """

    def __init__(self, state_dir: StateDir) -> None:
        self._directory = state_dir.bells
        self._board = Board()
        self._name = f"{os.getpid()}-{secrets.token_hex(4)}{_SUFFIX}"
        self._socket: socket.socket | None = None
        self._sockets: SocketDir | None = None

    async def open(self) -> None:
        self._sockets = SocketDir(self._directory)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(self._sockets.address(self._name))
        asyncio.get_running_loop().add_reader(self._socket, self._read)

    async def close(self) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None
            (self._directory / self._name).unlink(missing_ok=True)
        if self._sockets is not None:
            self._sockets.close()
            self._sockets = None

    def ring(self, *topics: str) -> None:
        for topic in topics:
            self._board.ring(topic)
        if self._socket is None or self._sockets is None:
            return
        message = "\n".join(topics).encode()
        for name in self._others():
            self._send(self._socket, name, self._sockets.address(name), message)

    def listen(self, *topics: str) -> Bell:
        return self._board.listen(*topics)

    def gather(self, prefix: str, limit: int = 1000) -> Gatherer:
        return self._board.gather(prefix, limit)

    def _others(self) -> list[str]:
        try:
            names = os.listdir(self._directory)
        except OSError:
            return []
        return [name for name in names if name.endswith(_SUFFIX) and name != self._name]

    def _send(self, sender: socket.socket, name: str, address: str, message: bytes) -> None:
        try:
            sender.sendto(message, address)
        except (ConnectionRefusedError, FileNotFoundError):
            (self._directory / name).unlink(missing_ok=True)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ENOBUFS):
                _log.warning("a doorbell did not ring: %s", error)

    def _read(self) -> None:
        if self._socket is None:
            return
        with contextlib.suppress(BlockingIOError):
            for _ in range(_MAX_READS):
                message = self._socket.recv(_MAX_DATAGRAM)
                for topic in message.decode("utf-8", "replace").split("\n"):
                    self._board.ring(topic)
