"""Who runs an attempt: a process, named so that anybody on its host can tell whether it lives."""

from __future__ import annotations

import os
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path

_ROLES = ("worker", "api")
_LINUX: bool = sys.platform == "linux"
"""Annotated, so that type checkers on one system also read the code for the others."""


@dataclass(frozen=True, slots=True)
class Owner:
    """One process, or one dispatcher within it.

    A process id alone is reused; with the boot, the pid namespace and the process's start time it
    is not, so a dead owner is recognised at once, without waiting for its lease, and a living one
    is never taken for dead.

    Attributes:
        role: `worker` or `api`.
        boot: Identifies the boot of the host.
        namespace: The pid namespace; in another one the pid means nothing.
        start: The process's start time, in whatever unit the host counts.
        nonce: Tells apart dispatchers that one process starts in turn.
    """

    role: str
    boot: str
    namespace: str
    pid: int
    start: str
    nonce: str

    def __str__(self) -> str:
        return ":".join(
            (self.role, self.boot, self.namespace, str(self.pid), self.start, self.nonce)
        )


def owner_of_this_process(role: str) -> Owner:
    """A new owner for a dispatcher in this process."""
    if role not in _ROLES:
        raise ValueError(f"an owner's role is one of {_ROLES}, not {role!r}")
    pid = os.getpid()
    return Owner(role, _boot(), _namespace(), pid, _start(pid) or "", secrets.token_hex(4))


def is_dead(text: str) -> bool:
    """Whether the owner is surely dead; False also when that cannot be known (then leases decide).

    Valid for owners of this host, which is all that a SQLite store has.
    """
    owner = _parse(text)
    if owner is None:
        return False
    if owner.boot != _boot():
        return True
    if owner.namespace != _namespace():
        return False
    return _start(owner.pid) != owner.start


def _parse(text: str) -> Owner | None:
    parts = text.split(":")
    if len(parts) != 6 or not parts[3].isdigit():
        return None
    role, boot, namespace, pid, start, nonce = parts
    return Owner(role, boot, namespace, int(pid), start, nonce)


def _boot() -> str:
    if _LINUX:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    import psutil

    return str(int(psutil.boot_time()))


def _namespace() -> str:
    if _LINUX:
        return str(os.stat("/proc/self/ns/pid").st_ino)
    return "0"


def _start(pid: int) -> str | None:
    """When the process started; None when it is gone, or dead and not yet reaped."""
    if _LINUX:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
        except OSError:
            return None
        # The command's name may contain anything; what follows its last bracket does not.
        fields = stat[stat.rindex(")") + 2 :].split()
        return None if fields[0] in "ZX" else fields[19]
    import psutil

    try:
        return repr(psutil.Process(pid).create_time())
    except psutil.Error:
        return None
