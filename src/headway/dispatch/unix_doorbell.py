"""Doorbells between processes of one host: a datagram socket for each listening process."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import secrets
import socket

from headway.core.clock import NS_PER_MS, monotonic_ns
from headway.core.statedir import StateDir
from headway.dispatch.doorbell import Bell, Board, Gatherer
from headway.dispatch.socket_dir import SocketDir

_log = logging.getLogger(__name__)

_MAX_DATAGRAM = 4096
_MAX_READS = 256
"""Datagrams taken from the socket in one turn of the event loop."""
_LATER_S = 0.005
_MAX_LATER = 50
"""Topics that fit into one datagram, whatever is rung with them."""
_SUFFIX = ".bell"
_KNOWN_FOR_NS = 100 * NS_PER_MS
"""How long the sockets that were found are rung without looking for others. The directory's time
of change tells of a new one at once, unless it came within the same tick of the clock."""


class UnixDoorbell:
    """Implements `Doorbell` with a socket under the state directory's `run/bells`.

    A ring is sent to every socket there but one's own, without blocking: when a listener's buffer
    is full it is awake already. The socket of a dead process refuses, and is removed by whoever
    finds out, so that nothing piles up (trap 20).
    """

    def __init__(self, state_dir: StateDir) -> None:
        self._directory = state_dir.bells
        self._path = str(self._directory)
        self._board = Board()
        self._name = f"{os.getpid()}-{secrets.token_hex(4)}{_SUFFIX}"
        self._socket: socket.socket | None = None
        self._sockets: SocketDir | None = None
        self._known: dict[str, str] = {}
        self._known_at = (0, 0)
        self._later: list[str] = []
        self._later_timer: asyncio.TimerHandle | None = None

    async def open(self) -> None:
        self._sockets = SocketDir(self._directory)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(self._sockets.address(self._name))
        asyncio.get_running_loop().add_reader(self._socket, self._read)

    async def close(self) -> None:
        if self._later_timer is not None:
            self._later_timer.cancel()
            self._ring_late()
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
        self._ring_others(topics)

    def ring_later(self, topic: str) -> None:
        self._board.ring(topic)
        self._later.append(topic)
        if len(self._later) >= _MAX_LATER or self._socket is None:
            self._ring_others(())
        elif self._later_timer is None:
            loop = asyncio.get_running_loop()
            self._later_timer = loop.call_later(_LATER_S, self._ring_late)

    def _ring_late(self) -> None:
        self._later_timer = None
        if self._later:
            self._ring_others(())

    def _ring_others(self, topics: tuple[str, ...]) -> None:
        """Ring in the other processes, with what was to be rung later."""
        later, self._later = self._later, []
        if self._socket is None or self._sockets is None:
            return
        message = "\n".join(dict.fromkeys((*later, *topics))).encode()
        for name, address in tuple(self._others(self._sockets).items()):
            self._send(self._socket, name, address, message)

    def listen(self, *topics: str) -> Bell:
        return self._board.listen(*topics)

    def gather(self, prefix: str, limit: int = 1000) -> Gatherer:
        return self._board.gather(prefix, limit)

    def _others(self, sockets: SocketDir) -> dict[str, str]:
        """The sockets of the other processes, with their addresses."""
        changed_ns, found_ns = self._known_at
        now_ns = monotonic_ns()
        try:
            last_change_ns = os.stat(self._path).st_mtime_ns
            if last_change_ns == changed_ns and now_ns - found_ns < _KNOWN_FOR_NS:
                return self._known
            names = os.listdir(self._directory)
        except OSError:
            return {}
        self._known = {
            name: sockets.address(name)
            for name in names
            if name.endswith(_SUFFIX) and name != self._name
        }
        self._known_at = (last_change_ns, now_ns)
        return self._known

    def _send(self, sender: socket.socket, name: str, address: str, message: bytes) -> None:
        try:
            sender.sendto(message, address)
        except (ConnectionRefusedError, FileNotFoundError):
            self._known.pop(name, None)
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
