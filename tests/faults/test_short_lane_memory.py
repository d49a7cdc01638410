"""Thousands of short jobs leave every process of a server as large as it was (J12)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from accounting import query, wait_until
from fault_server import submit
from job_servers import JobServer, StartServer

OPERATIONS = Path(__file__).parents[1] / "e2e" / "engine_ops.py"
BATCH = 500
MIB = 1024 * 1024
GROWTH_MIB = 12
"""Allowed after the first quarter; a leak of 4 KiB a job would be 30 MiB in 7,500 jobs."""

pytestmark = pytest.mark.timeout(900)


def sizes_mib(server: JobServer) -> dict[str, float]:
    """Resident memory by the title of the process; of job processes, the largest."""
    sizes: dict[str, float] = {}
    for process in server.tree():
        title = " ".join(process.cmdline()) or process.name()
        kind = "short jobs" if "short" in title else title.strip()
        sizes[kind] = max(sizes.get(kind, 0.0), process.memory_info().rss / MIB)
    return sizes


def run_jobs(server: JobServer, count: int) -> None:
    with server.client() as client:
        for _ in range(count // BATCH):
            submit(client, "quick", BATCH)
            wait_until(lambda: not waiting(server), 300, lambda: f"{waiting(server)} wait")


def waiting(server: JobServer) -> int:
    return int(
        str(query(server.state_dir, "SELECT count(*) FROM jobs WHERE ended_at_us IS NULL")[0][0])
    )


def assert_flat(server: JobServer, count: int) -> None:
    """The first quarter warms up: caches, pools, the heap. Then nothing grows."""
    run_jobs(server, count // 4)
    before = sizes_mib(server)
    run_jobs(server, count - count // 4)
    after = sizes_mib(server)
    table = {kind: (round(size, 1), round(after[kind], 1)) for kind, size in before.items()}
    print(f"after {count // 4} and {count} jobs, MiB: {table}")
    grown = {kind: after[kind] - size for kind, size in before.items()}
    assert {"headway: server", "headway: worker", "short jobs"} <= set(grown), grown
    assert max(grown.values()) < GROWTH_MIB, table


@pytest.mark.parametrize(
    "count",
    [
        2_000,
        pytest.param(
            10_000,
            marks=pytest.mark.skipif(
                "HEADWAY_SOAK" not in os.environ,
                reason="10,000 jobs take minutes; set HEADWAY_SOAK=1 to run them",
            ),
        ),
    ],
)
def test_the_short_lane_stays_flat(start_server: StartServer, count: int) -> None:
    server = start_server("--long", "0+0", "--short", "2+0", "--no-bench", operations=OPERATIONS)
    assert_flat(server, count)
