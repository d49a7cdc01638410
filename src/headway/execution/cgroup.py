"""Control groups of version 2, where the host lets this process make some.

A group holds a job's tree however it forks, and `cgroup.kill` ends it in one write. Systemd hosts
delegate a subtree to services and sessions; hybrid hosts mount version 2 beside version 1.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headway.core.clock import Clock, ns_from_s
from headway.execution.linux import is_running

PREFIX = "headway-"
KILL_LIMIT_S = 5.0
POLL_S = 0.001
"""`cgroup.events` cannot be watched by an event loop (it is always "ready"); a kill takes 1 ms."""


@dataclass(frozen=True, slots=True)
class Cgroup:
    """One group directory."""

    path: Path

    @property
    def procs_file(self) -> str:
        """Whoever writes `0` here enters the group."""
        return str(self.path / "cgroup.procs")

    def members(self) -> tuple[int, ...]:
        """Pids in the group, without those of groups below."""
        try:
            return tuple(int(line) for line in self._read("cgroup.procs").split())
        except OSError:
            return ()

    def enter(self, pid: int) -> None:
        """Move a process here.

        Raises:
            OSError: the host does not allow it.
        """
        self._write("cgroup.procs", str(pid))

    def kill_nowait(self) -> None:
        """SIGKILL for everything in the group and below. A missing group is no error."""
        with contextlib.suppress(OSError):
            self._write("cgroup.kill", "1")

    def is_populated(self) -> bool:
        try:
            return "populated 1" in self._read("cgroup.events")
        except OSError:
            return False

    async def kill(self, clock: Clock) -> tuple[int, ...]:
        """Kill until nothing lives in the group; returns what does after KILL_LIMIT_S.

        Told again at each look: until Linux 6.14 a child whose fork was under way could miss it.
        """
        deadline_ns = clock.monotonic_ns() + ns_from_s(KILL_LIMIT_S)
        while self.is_populated():
            self.kill_nowait()
            if clock.monotonic_ns() > deadline_ns:
                return self.members()
            await asyncio.sleep(POLL_S)
        return ()

    def cpu_s(self) -> float | None:
        """CPU time of everything that ever was in the group."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int(self._read("cpu.stat").split()[1]) / 1e6
        return None

    def out_of_memory_kills(self) -> int:
        """Processes that were killed for the group's own memory limit."""
        with contextlib.suppress(OSError):
            for line in self._read("memory.events").splitlines():
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
        return 0

    def peak_memory_bytes(self) -> int:
        """Largest memory of the group, page cache included; 0 where it is not counted."""
        with contextlib.suppress(OSError, ValueError):
            return int(self._read("memory.peak"))
        return 0

    def limit_memory(self, limit_bytes: int) -> bool:
        """Set a hard limit on the whole tree; False where the host does not offer it."""
        try:
            self._write("memory.max", str(limit_bytes))
            # One process over the limit takes the whole attempt down, never half of it.
            self._write("memory.oom.group", "1")
        except OSError:
            return False
        return True

    def remove(self) -> bool:
        """Remove the empty group; False when it is not empty."""
        try:
            self.path.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def _read(self, name: str) -> str:
        return (self.path / name).read_text(encoding="ascii")

    def _write(self, name: str, text: str) -> None:
        # Unbuffered and at once: the kernel judges each write.
        handle = os.open(self.path / name, os.O_WRONLY)
        try:
            os.write(handle, text.encode("ascii"))
        finally:
            os.close(handle)


class CgroupBase:
    """The directory that holds the groups of one supervisor.

    Args:
        parent: Where this process may make groups.
        owner: The supervisor's `process_name`, so that a successor knows whom it belonged to.
    """

    def __init__(self, parent: Path, owner: str) -> None:
        self._parent = parent
        self._base = Cgroup(parent / f"{PREFIX}{owner}")
        self._count = 0

    @property
    def path(self) -> Path:
        return self._base.path

    def create(self) -> bool:
        """Make the directory; False when the host does not allow it or has no `cgroup.kill`."""
        try:
            self.path.mkdir(exist_ok=True)
        except OSError:
            return False
        if not (self.path / "cgroup.kill").exists():
            self._base.remove()
            return False
        with contextlib.suppress(OSError):
            (self.path / "cgroup.subtree_control").write_text("+memory", encoding="ascii")
        return True

    def new(self, name: str = "") -> Cgroup:
        """Make a group.

        Raises:
            OSError: the host refuses one more.
        """
        self._count += 1
        group = Cgroup(self.path / (name or f"job-{self._count}"))
        group.path.mkdir(exist_ok=True)
        return group

    def kill_stale(self) -> None:
        """Kill what supervisors that are dead by now left under the same parent."""
        for path in self._parent.glob(f"{PREFIX}*"):
            if path != self.path and not is_running(path.name.removeprefix(PREFIX)):
                Cgroup(path).kill_nowait()
                _remove_tree(path)

    def remove(self) -> None:
        """Kill whatever is left and remove every group."""
        self._base.kill_nowait()
        _remove_tree(self.path)


def find_parent() -> Path | None:
    """Where this process's own version 2 group is mounted, or None."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
        groups = Path("/proc/self/cgroup").read_text(encoding="utf-8")
    except OSError:
        return None
    own = next((line[3:] for line in groups.splitlines() if line.startswith("0::")), None)
    if own is None:
        return None
    for root, mount in _version_2_mounts(mounts):
        if own == root or own.startswith(root.rstrip("/") + "/"):
            return Path(mount) / own[len(root) :].lstrip("/")
    return None


def _version_2_mounts(text: str) -> Iterator[tuple[str, str]]:
    """Root and mount point of each cgroup2 mount (proc_pid_mountinfo(5))."""
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        if after.startswith("cgroup2 "):
            fields = before.split(" ")
            yield fields[3], fields[4]


def _remove_tree(path: Path) -> None:
    with contextlib.suppress(OSError):
        for child in path.iterdir():
            if child.is_dir():
                _remove_tree(child)
        path.rmdir()
