"""Every budget of the job engine, P10 to P18, one after another, and a table of what holds.

    [PEERS=1] python benchmarks/jobs/budgets.py > results.md
    python benchmarks/jobs/budgets.py P10 P14

Takes about ten minutes on a machine that has nothing else to do; on any other the ratios say more
than the times. Each part prints its own command, so that it can be run by itself.
"""

from __future__ import annotations

import os
import platform
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
PARTS = {
    ("P10",): ["latency.py"],
    ("P11",): ["rates.py"],
    ("P12",): ["fresh.py"],
    ("P13",): ["idle.py"],
    ("P14",): ["cancels.py"],
    ("P15",): ["crashes.py", "P15"],
    ("P16",): ["crashes.py", "P16"],
    ("P17",): ["following.py"],
    ("P18",): ["growth.py"],
}
_VERDICT = re.compile(r"^(P\d+): (.*): (met|MISSED)$")


def run(part: list[str]) -> list[str]:
    """Run one part, show its output as it comes, and return its lines."""
    began_s = time.monotonic()
    lines = []
    with subprocess.Popen(
        [sys.executable, str(HERE / part[0]), *part[1:]],
        stdout=subprocess.PIPE, text=True, cwd=HERE.parent.parent,
    ) as process:  # fmt: skip
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip())
    if process.returncode:
        lines.append(f"{' '.join(part)} failed with exit code {process.returncode}")
    print(f"\n({' '.join(part)} took {time.monotonic() - began_s:.0f} s)", flush=True)
    return lines


def rows(budgets: tuple[str, ...], lines: list[str]) -> list[str]:
    """Rows of the last table: the verdicts of a part."""
    found = [match for line in lines if (match := _VERDICT.match(line))]
    last = lines[-1] if lines else "nothing printed"
    return [f"| {match[1]} | {match[2]} | {match[3]} |" for match in found] or [
        f"| {' '.join(budgets)} | {last} | not measured |"
    ]


def main() -> None:
    wanted = set(sys.argv[1:])
    table: list[str] = []
    if os.environ.get("PEERS") == "1":
        print("SkyPilot's API server is not measured: there is no driver for it yet.", flush=True)
    for budgets, part in PARTS.items():
        if not wanted or wanted & set(budgets):
            table += rows(budgets, run(part))
    cpu = next(
        (line.partition(": ")[2] for line in Path("/proc/cpuinfo").read_text().splitlines()
         if line.startswith("model name")),
        platform.machine(),
    )  # fmt: skip
    cores = len(os.sched_getaffinity(0))
    print(f"\n### All budgets\n\n{cores} × {cpu}, Python {platform.python_version()}, "
          f"{platform.platform()}\n\n| budget | measured | |\n|---|---|---|")  # fmt: skip
    print("\n".join(table))


if __name__ == "__main__":
    main()
