"""The few calls that Python does not offer, and facts from /proc."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from typing import NamedTuple

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")

# Loaded at import, so that a job process need not do it between fork and its first instruction.
_libc = ctypes.CDLL(None, use_errno=True)


def set_subreaper(on: bool) -> None:
    """Make this process the new parent of descendants whose parent dies."""
    _prctl(_PR_SET_CHILD_SUBREAPER, int(on))


def is_subreaper() -> bool:
    """Whether this process adopts orphaned descendants."""
    value = ctypes.c_int()
    _prctl(_PR_GET_CHILD_SUBREAPER, ctypes.addressof(value))
    return bool(value.value)


def set_parent_death_signal(number: int) -> None:
    """Get signal `number` when the parent dies, and again when an adopting parent dies."""
    _prctl(_PR_SET_PDEATHSIG, number)


def flush_c_streams() -> None:
    """Write what C code has left in its stdio buffers."""
    _libc.fflush(None)


def clear_c_environment() -> None:
    """Empty the C library's environment: `os.environ` does not know what `putenv` has set."""
    _libc.clearenv()


def _prctl(option: int, argument: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(argument), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")


class ProcessFacts(NamedTuple):
    """One line of /proc/PID/stat.

    A tuple, because a sweep makes hundreds of them within its time to kill.

    Attributes:
        start_ticks: Start time in clock ticks since boot; with the pid it names one process for
            good.
    """

    pid: int
    state: str
    parent: int
    group: int
    session: int
    threads: int
    start_ticks: int
    rss_bytes: int

    @property
    def alive(self) -> bool:
        return self.state not in "ZX"


def read_process(pid: int) -> ProcessFacts | None:
    """Facts of a process, or None when there is none."""
    try:
        # Without a file object, which would take longer than the rest.
        handle = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        text = os.read(handle, 4096)
    except OSError:
        return None
    finally:
        os.close(handle)
    # The name may hold spaces and parentheses; the last parenthesis ends it.
    fields = text[text.rindex(b")") + 2 :].split()
    return ProcessFacts(
        pid=pid,
        state=fields[0].decode(),
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        threads=int(fields[17]),
        start_ticks=int(fields[19]),
        rss_bytes=int(fields[21]) * PAGE_BYTES,
    )


def read_processes() -> dict[int, ProcessFacts]:
    """Facts of every process that can be seen."""
    found = (read_process(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {facts.pid: facts for facts in found if facts is not None}


def descendants(of: int, processes: dict[int, ProcessFacts]) -> list[ProcessFacts]:
    """Living descendants of a process, parents before children."""
    children: dict[int, list[ProcessFacts]] = {}
    for facts in processes.values():
        children.setdefault(facts.parent, []).append(facts)
    found, waiting = [], [of]
    while waiting:
        for child in children.get(waiting.pop(), []):
            found.append(child)
            waiting.append(child.pid)
    return [facts for facts in found if facts.alive]


def kill_exactly(facts: ProcessFacts, number: int = signal.SIGKILL) -> bool:
    """Signal the process that `facts` were read of, never one that got its pid since (trap 5).

    Returns:
        False when it is gone.
    """
    try:
        handle = os.pidfd_open(facts.pid)
    except OSError:
        return False
    try:
        now = read_process(facts.pid)
        if now is None or now.start_ticks != facts.start_ticks or not now.alive:
            return False
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def process_name(pid: int) -> str | None:
    """`PID.START`, which no other process of this boot ever has."""
    facts = read_process(pid)
    return f"{pid}.{facts.start_ticks}" if facts else None


def is_running(name: str) -> bool:
    """Whether the process with that `process_name` is alive; a suffix after it is ignored."""
    with contextlib.suppress(ValueError):
        pid, start = name.split(".")[:2]
        facts = read_process(int(pid))
        return facts is not None and facts.alive and facts.start_ticks == int(start)
    return False


def oom_kills() -> int:
    """How many processes the kernel's out-of-memory killer has killed on this host."""
    try:
        with open("/proc/vmstat", encoding="ascii") as file:
            for line in file:
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0
