"""How much CPU and memory this process may really use: what the host has, or its cgroup allows."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

_UNLIMITED_V1 = 2**60
"""cgroup v1 says "no limit" with a number near 2**63."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What may be used.

    Attributes:
        cpus: CPUs, a fraction where a quota says so; > 0.
        memory_bytes: Memory in total.
        source: Where the numbers come from, for the start message.
    """

    cpus: float
    memory_bytes: int
    source: str


@dataclass(frozen=True, slots=True)
class HostFiles:
    """Where the kernel says it; another root in tests.

    Attributes:
        proc: `/proc`.
        cgroup: `/sys/fs/cgroup`.
    """

    proc: Path = Path("/proc")
    cgroup: Path = Path("/sys/fs/cgroup")

    def groups(self) -> list[Path]:
        """The cgroup v2 directories of this process, from its own to the root.

        A limit anywhere on the way binds. Within a container the own group is the mount's root.
        """
        own = Path("/")
        for line in _lines(self.proc / "self/cgroup"):
            if line.startswith("0::"):
                own = Path(line[3:])
        relative = own.relative_to("/")
        paths = [self.cgroup / relative, *(self.cgroup / part for part in relative.parents)]
        return [path for path in paths if path.is_dir()]


def capacity(files: HostFiles | None = None) -> Capacity:
    """What this process may use now; cgroup v2 and v1 limits count (J1)."""
    files = files or HostFiles()
    cpus, cpu_source = min(
        [(float(_affinity()), "host"), *((quota, "cgroup") for quota in _cpu_quotas(files))]
    )
    memory, memory_source = min(
        [(_memory_total(files), "host"), *((limit, "cgroup") for limit in _memory_limits(files))]
    )
    return Capacity(cpus, memory, f"CPUs: {cpu_source}, memory: {memory_source}")


class MemoryGauge:
    """Reads how much memory can still be taken: of the host, or less when a cgroup is nearer.

    The files of the cgroups are looked up once; a process rarely moves.
    """

    def __init__(self, files: HostFiles | None = None) -> None:
        self._files = files or HostFiles()
        v2 = [_CgroupMemory.v2(group) for group in self._files.groups()]
        v1 = _CgroupMemory.v1(self._files.cgroup / "memory")
        self._groups = [group for group in (*v2, v1) if group.limit.exists()]

    def available_bytes(self) -> int:
        free = [_meminfo(self._files, "MemAvailable"), *(group.free() for group in self._groups)]
        return max(0, min(each for each in free if each is not None))


@dataclass(frozen=True, slots=True)
class _CgroupMemory:
    limit: Path
    used: Path
    stat: Path
    reclaimable: str

    @staticmethod
    def v2(group: Path) -> _CgroupMemory:
        return _CgroupMemory(
            group / "memory.max", group / "memory.current", group / "memory.stat", "inactive_file"
        )

    @staticmethod
    def v1(group: Path) -> _CgroupMemory:
        return _CgroupMemory(
            group / "memory.limit_in_bytes",
            group / "memory.usage_in_bytes",
            group / "memory.stat",
            "total_inactive_file",
        )

    def free(self) -> int | None:
        """None when there is no limit."""
        limit, used = _number(self.limit), _number(self.used)
        if limit is None or used is None or limit >= _UNLIMITED_V1:
            return None
        return limit - used + _reclaimable(self.stat, self.reclaimable)


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_quotas(files: HostFiles) -> list[float]:
    quotas = []
    for group in files.groups():
        words = " ".join(_lines(group / "cpu.max")).split()
        if len(words) == 2 and words[0] != "max":
            quotas.append(int(words[0]) / int(words[1]))
    quota = _number(files.cgroup / "cpu/cpu.cfs_quota_us")
    period = _number(files.cgroup / "cpu/cpu.cfs_period_us")
    if quota is not None and period and quota > 0:
        quotas.append(quota / period)
    return quotas


def _memory_limits(files: HostFiles) -> list[int]:
    limits = [_number(group / "memory.max") for group in files.groups()]
    v1 = _number(files.cgroup / "memory/memory.limit_in_bytes")
    if v1 is not None and v1 < _UNLIMITED_V1:
        limits.append(v1)
    return [limit for limit in limits if limit is not None]


def _memory_total(files: HostFiles) -> int:
    return _meminfo(files, "MemTotal")


def _meminfo(files: HostFiles, name: str) -> int:
    for line in _lines(files.proc / "meminfo"):
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    import psutil  # not Linux

    memory = psutil.virtual_memory()
    return int(memory.total if name == "MemTotal" else memory.available)


def _reclaimable(stat: Path, name: str) -> int:
    """File cache that the kernel gives back before it kills anybody."""
    for line in _lines(stat):
        words = line.split()
        if words[0] == name:
            return int(words[1])
    return 0


def _number(path: Path) -> int | None:
    text = " ".join(_lines(path)).strip()
    return int(text) if text.lstrip("-").isdigit() else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("ascii", "replace").splitlines()
    except OSError:
        return []


def whole_cpus(cpus: float) -> int:
    """CPUs as a number of processes, at least one."""
    return max(1, math.floor(cpus + 0.001))
