from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from headway.core.clock import ManualClock
from headway.core.states import Lane
from headway.dispatch.capacity import Capacity, HostFiles, MemoryGauge, capacity
from headway.dispatch.lanes import (
    BurstGate,
    LaneSize,
    LaneSlots,
    default_sizes,
    warm_processes,
)
from headway.dispatch.worker import describe_lanes
from headway.dispatch.worker_settings import LaneOverride, WorkerSettings

GIB = 1024**3


@pytest.fixture
def files(tmp_path: Path) -> HostFiles:
    """A host with 64 GiB of which 40 are available, in cgroup /a/b."""
    proc, cgroup = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (cgroup / "a/b").mkdir(parents=True)
    (proc / "self/cgroup").write_text("0::/a/b\n")
    (proc / "meminfo").write_text(
        f"MemTotal: {64 * GIB // 1024} kB\nMemAvailable: {40 * GIB // 1024} kB\n"
    )
    return HostFiles(proc, cgroup)


def write(files: HostFiles, **texts: str) -> None:
    for name, text in texts.items():
        path = files.cgroup / name.replace("__", "/").replace("DOT", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


def test_without_limits_the_host_counts(files: HostFiles) -> None:
    write(files, a__b__cpuDOTmax="max 100000", a__b__memoryDOTmax="max")
    found = capacity(files)
    assert found.cpus >= 1
    assert found.memory_bytes == 64 * GIB
    assert MemoryGauge(files).available_bytes() == 40 * GIB


def test_a_cgroup_v2_limit_anywhere_above_binds(files: HostFiles) -> None:
    write(
        files, a__b__memoryDOTmax="max", a__memoryDOTmax=str(8 * GIB),
        a__memoryDOTcurrent=str(6 * GIB), a__memoryDOTstat=f"anon 1\ninactive_file {GIB}",
        a__cpuDOTmax="50000 100000",
    )  # fmt: skip
    found = capacity(files)
    assert (found.cpus, found.memory_bytes) == (0.5, 8 * GIB)
    assert "cgroup" in found.source
    assert MemoryGauge(files).available_bytes() == 3 * GIB


def test_a_cgroup_v1_limit_binds(files: HostFiles) -> None:
    write(
        files, memory__memoryDOTlimit_in_bytes=str(4 * GIB),
        memory__memoryDOTusage_in_bytes=str(GIB), memory__memoryDOTstat="total_inactive_file 0",
        cpu__cpuDOTcfs_quota_us="25000", cpu__cpuDOTcfs_period_us="100000",
    )  # fmt: skip
    assert (capacity(files).cpus, capacity(files).memory_bytes) == (0.25, 4 * GIB)
    assert MemoryGauge(files).available_bytes() == 3 * GIB


def test_no_limit_in_v1_is_a_huge_number(files: HostFiles) -> None:
    write(
        files, memory__memoryDOTlimit_in_bytes=str(2**63 - 4096),
        memory__memoryDOTusage_in_bytes="1", cpu__cpuDOTcfs_quota_us="-1",
        cpu__cpuDOTcfs_period_us="100000",
    )  # fmt: skip
    assert capacity(files).memory_bytes == 64 * GIB
    assert MemoryGauge(files).available_bytes() == 40 * GIB


@pytest.mark.parametrize(
    ("cpus", "gib", "long"),
    [(2, 64, (2, 2)), (64, 4, (8, 0)), (0.5, 64, (1, 1)), (4, 2.5, (4, 1)), (2, 0.1, (1, 0))],
)
def test_cpus_and_memory_both_bound_the_lanes(
    cpus: float, gib: float, long: tuple[int, int]
) -> None:
    """Trap 18: counts from memory alone gave 60 processes on 2 cores."""
    sizes = default_sizes(Capacity(cpus, int(gib * GIB), "test"))
    assert (sizes[Lane.LONG].guaranteed, sizes[Lane.LONG].burst) == long


@pytest.mark.parametrize(
    ("guaranteed", "burst", "kept"),
    [(2, 6, 4), (4, 0, 4), (2, 2, 2), (2, 3, 3), (0, 1, 1), (0, 0, 1), (4, 12, 8)],
)
def test_the_short_lane_keeps_a_process_for_two_slots_and_for_each_guaranteed_one(
    guaranteed: int, burst: int, kept: int
) -> None:
    """P13: a slot costs a claim, a process costs memory."""
    assert warm_processes(LaneSize(guaranteed, burst)) == kept


def test_on_two_cores_eight_short_jobs_run_at_a_time_on_four_processes() -> None:
    """P11, P13."""
    short = default_sizes(Capacity(2, 8 * GIB, "test"))[Lane.SHORT]
    assert (short, warm_processes(short)) == (LaneSize(2, 6), 4)


def test_overrides_replace_what_they_name_and_the_start_message_tells() -> None:
    settings = WorkerSettings(
        state_dir=Path("x"), operations=("m",), lanes={Lane.LONG: LaneOverride(burst=7)}
    )
    found = Capacity(2, 64 * GIB, "CPUs: host, memory: cgroup")
    sizes = settings.lane_sizes(found)
    assert sizes[Lane.LONG] == LaneSize(2, 7)
    assert describe_lanes(sizes, found).startswith("long 2 guaranteed + 7 burst, short 2")


def test_a_job_takes_the_first_slot_that_frees_of_either_kind() -> None:
    """Trap 9: a job queued behind a busy guaranteed slot though a burst slot was free."""
    slots = LaneSlots(LaneSize(1, 1), lambda: 9)
    assert slots.free() == 2
    slots.take()
    slots.take()
    assert slots.free() == 0
    slots.give_back()
    assert slots.free() == 1


def test_burst_is_refused_while_memory_is_short_guaranteed_is_not() -> None:
    """J1, J26, trap 25c."""
    available = [10 * GIB]
    clock = ManualClock(datetime(2026, 11, 30, tzinfo=UTC), monotonic_ns=1)
    gate = BurstGate(lambda: available[0], reserve_bytes=2 * GIB, job_bytes=GIB, clock=clock)
    slots = LaneSlots(LaneSize(2, 20), gate.allowed)
    assert slots.free() == 2 + 8
    available[0] = GIB
    clock.advance(BurstGate.READ_EVERY_S)
    assert slots.free() == 2
    slots.take()
    slots.take()
    assert slots.free() == 0
    available[0] = 3 * GIB
    clock.advance(BurstGate.READ_EVERY_S)
    assert slots.free() == 1


def test_a_slot_given_back_twice_is_a_bug() -> None:
    with pytest.raises(AssertionError):
        LaneSlots(LaneSize(1, 0), lambda: 0).give_back()
