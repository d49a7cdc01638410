"""What a short job costs: CPU time by process of a real server, while batches run (P11).

    python benchmarks/jobs/costs.py [--jobs 3000]

More useful on a busy machine than a rate, though caches that others use make it larger too.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from harness import ROUNDS, Rounds, cpu_s, header, row, server, title, tree
from rates import in_batches

WARM_UP = 500
KINDS = ("server", "worker", "job processes")


def cpu_by_kind(root: int) -> dict[str, float]:
    """CPU seconds so far; job processes that have ended are in the forkserver's time."""
    used = dict.fromkeys(KINDS, 0.0)
    for pid in tree(root):
        used[_kind(pid)] += cpu_s([pid])
    return used


def _kind(pid: int) -> str:
    try:
        name = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return "job processes"
    return next((kind for kind in ("server", "worker") if f"headway: {kind}" in name),
                "job processes")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--jobs", type=int, default=3000)
    jobs = parser.parse_args().jobs
    title("What a short job costs")
    used = {kind: Rounds(0) for kind in (*KINDS, "all")}
    rate = Rounds(0)
    with server() as measured:
        in_batches(measured, WARM_UP)
        for _ in range(ROUNDS):
            before = cpu_by_kind(measured.process.pid)
            rate.add(in_batches(measured, jobs))
            after = cpu_by_kind(measured.process.pid)
            each = {kind: (after[kind] - before[kind]) / jobs * 1e6 for kind in KINDS}
            for kind, cost_us in (*each.items(), ("all", sum(each.values()))):
                used[kind].add(cost_us)
    header("what", "measured")
    row("jobs a second", rate)
    for kind, cost in used.items():
        row(f"CPU for a job, {kind}, µs", cost)


if __name__ == "__main__":
    main()
