"""How many attempts of each lane may run at once, and which of the slots are taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from headway.core.clock import Clock, ns_from_s
from headway.core.states import Lane
from headway.dispatch.capacity import Capacity, whole_cpus

MIB = 1024 * 1024
_LONG_JOB_BYTES = 512 * MIB
"""Memory that one more long job is assumed to need when the lane is sized: CPUs alone would start
60 processes on a host with little memory, memory alone 60 on two CPUs (trap 18)."""


class LaneSize(msgspec.Struct, frozen=True):
    """Slots of a lane.

    Attributes:
        guaranteed: Always there.
        burst: Further slots, refused while memory is short.
    """

    guaranteed: int
    burst: int

    @property
    def total(self) -> int:
        return self.guaranteed + self.burst


LaneSizes = Mapping[Lane, LaneSize]


def default_sizes(capacity: Capacity) -> dict[Lane, LaneSize]:
    """Sizes of the process lanes for what the host, or its cgroup, has."""
    cpus = whole_cpus(capacity.cpus)
    by_memory = max(1, capacity.memory_bytes // _LONG_JOB_BYTES)
    long_guaranteed = min(cpus, by_memory)
    return {
        Lane.LONG: LaneSize(long_guaranteed, min(cpus, by_memory - long_guaranteed)),
        Lane.SHORT: LaneSize(max(2, cpus), 3 * max(2, cpus)),
    }


def warm_processes(short: LaneSize) -> int:
    """How many processes the short lane keeps (decision 0038).

    One for each guaranteed slot, and one for two slots at least: while one attempt runs, the next
    is claimed already, so that its process waits for no commit.
    """
    return max(1, short.guaranteed, (short.total + 1) // 2)


class LaneSlots:
    """Counts the slots of one lane. A job takes the first that frees, of either kind (trap 9):
    slots are not handed out by name, only counted.

    Args:
        size: How many there are.
        burst_allowed: How many burst slots memory allows to be added now.
    """

    def __init__(self, size: LaneSize, burst_allowed: Callable[[], int]) -> None:
        self.size = size
        self.used = 0
        self._admitted = 0
        self._burst_allowed = burst_allowed

    def free(self) -> int:
        """How many attempts may be started now."""
        guaranteed = max(0, self.size.guaranteed - self.used)
        burst = self.size.total - max(self.used, self.size.guaranteed)
        if burst <= 0:
            return guaranteed
        return guaranteed + min(burst, self._burst_allowed())

    @property
    def promised(self) -> int:
        """Slots that are used, or will be by what was admitted."""
        return self.used + self._admitted

    def admit(self, count: int) -> None:
        """Count attempts that will come, so that more than there are slots can be refused."""
        self._admitted += count

    def forget_admitted(self) -> None:
        """The queue is empty: whatever was admitted has come, or waits for something else."""
        self._admitted = 0

    def take(self) -> None:
        self.used += 1
        self._admitted = max(0, self._admitted - 1)

    def give_back(self) -> None:
        assert self.used > 0, "a slot was given back twice"
        self.used -= 1


class BurstGate:
    """Lets burst slots be used only while memory is there (J1, J26).

    Args:
        available_bytes: Reads the memory that can still be taken.
        reserve_bytes: Never given to burst.
        job_bytes: What one more attempt is assumed to take before it has shown what it needs.
        clock: The memory is read at most every READ_EVERY_S: a busy lane asks for each job.
    """

    READ_EVERY_S = 0.1

    def __init__(
        self, available_bytes: Callable[[], int], reserve_bytes: int, job_bytes: int, clock: Clock
    ) -> None:
        self._available_bytes = available_bytes
        self._reserve_bytes = reserve_bytes
        self._job_bytes = job_bytes
        self._clock = clock
        self._read_again_ns = 0
        self._allowed = 0

    def allowed(self) -> int:
        """How many more attempts memory allows now."""
        now_ns = self._clock.monotonic_ns()
        if now_ns >= self._read_again_ns:
            self._read_again_ns = now_ns + ns_from_s(self.READ_EVERY_S)
            spare_bytes = max(0, self._available_bytes() - self._reserve_bytes)
            self._allowed = spare_bytes // self._job_bytes
        return self._allowed
