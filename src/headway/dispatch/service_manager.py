"""What a service manager is told of this process: systemd's notification protocol.

A datagram to the socket that NOTIFY_SOCKET names, lines of `NAME=value` in it. Without that
variable nobody listens, and everything here does nothing.

Source: sd_notify(3), sd_watchdog_enabled(3).
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Mapping
from typing import Self

_log = logging.getLogger(__name__)

_READY_S = 5.0
"""How long `ready` waits for room at a manager that is busy: without that word it gives up on the
start. Everything else it is told again, or can do without."""
_US_PER_S = 1_000_000


class ServiceManager:
    """Whoever started this process and wants to know how it is. A message that does not get
    through is logged once and never a reason to stop.

    Args:
        address: Of its socket: a path, or `@` and an abstract name; None: nobody listens.
        watchdog_s: It replaces a process that gives no sign of life for so long; None: it does not.

    Attributes:
        watchdog_s: As given.
    """

    def __init__(self, address: str | None = None, watchdog_s: float | None = None) -> None:
        self._address = None if address is None else _socket_address(address)
        self.watchdog_s = None if self._address is None else watchdog_s
        self._state = ""
        self._failed = False

    @classmethod
    def from_environ(cls, environ: Mapping[str, str], pid: int) -> Self:
        """The one that the environment tells of.

        Args:
            environ: Of this process.
            pid: Of this process: a watchdog that is meant for another one is not ours.
        """
        address = environ.get("NOTIFY_SOCKET") or None
        return cls(address, _watchdog_s(environ, pid))

    def ready(self, state: str) -> None:
        """Jobs are taken and run.

        Args:
            state: One line for people, as all that is told of the state.
        """
        self._state = state
        self._send(_READY_S, "READY=1", _status(state))

    def stopping(self, state: str) -> None:
        """What runs is finished or given back, then the process ends."""
        self._state = state
        self._send(0.0, "STOPPING=1", _status(state))

    def alive(self) -> None:
        """A sign of life: the process does what it is there for."""
        self._send(0.0, "WATCHDOG=1")

    def trouble(self, text: str) -> None:
        """Why no sign of life comes now."""
        self._send(0.0, _status(text))

    def well(self) -> None:
        """The trouble is over."""
        self._send(0.0, _status(self._state))

    def _send(self, patience_s: float, *lines: str) -> None:
        if self._address is None:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.settimeout(patience_s)
                sender.sendto("\n".join(lines).encode("utf-8", "replace"), self._address)
        except OSError as error:
            if not self._failed:
                _log.warning("the service manager cannot be told (NOTIFY_SOCKET): %s", error)
            self._failed = True


def _socket_address(address: str) -> str | None:
    if address.startswith("/"):
        return address
    if address.startswith("@"):
        return "\0" + address[1:]
    _log.warning("NOTIFY_SOCKET is neither a path nor an abstract name, and is left alone")
    return None


def _watchdog_s(environ: Mapping[str, str], pid: int) -> float | None:
    text = environ.get("WATCHDOG_USEC", "")
    if not text or environ.get("WATCHDOG_PID", str(pid)) != str(pid):
        return None
    if not (text.isascii() and text.isdigit()) or int(text) == 0:
        _log.warning("WATCHDOG_USEC is not a number of microseconds, and is left alone")
        return None
    return int(text) / _US_PER_S


def _status(text: str) -> str:
    # A line feed would begin another variable.
    return "STATUS=" + " ".join(text.split())
