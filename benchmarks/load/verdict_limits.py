"""What a busy client adds to what it measures: the measurement behind the limits of CLIENT_BOUND.

A target of known latency (20 ms) costs the worker a known share of its core: each request computes
2 ms on the worker's event loop. Poisson arrivals at rising rates, one worker. What lies above the
known latency was added by the client.

    python benchmarks/load/verdict_limits.py [--seconds 12]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from harness import command_line, title

OWN_S = 0.002
TARGET_S = 0.020
BUSY = (0.02, 0.3, 0.5, 0.7, 0.8, 0.9)


async def costly(prompt: str) -> str:
    """A request of known cost to the client and known latency of the target."""
    until = time.thread_time() + OWN_S
    while time.thread_time() < until:
        pass
    await asyncio.sleep(TARGET_S)
    return prompt


def measured(busy: float, seconds: float) -> dict[str, Any]:
    """The report of a stage at the rate that keeps the core busy for this share of the time."""
    with tempfile.TemporaryDirectory(prefix="headway-bench-") as scratch:
        done = subprocess.run(
            [
                sys.executable, "-m", "headway.cli.main", "bench", "--no-calibrate", "--json",
                "--backend", "python", "--function", "verdict_limits:costly", "--workers", "1",
                "--profile", "poisson", "--rate", f"{busy / OWN_S:g}",
                "--max-seconds", f"{seconds:g}s", "--run-dir", f"{scratch}/run",
            ],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        stage: dict[str, Any] = json.loads(done.stdout)["stages"][0]
        return stage


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=12.0)
    seconds = parser.parse_args().seconds
    title("Verdict: what a busy client adds", command_line())
    true_s = OWN_S + TARGET_S
    print(
        "| asked of the core | used | loop lag p50 | added p50 | added p99 | lateness p99 | said |"
    )
    print("|---|---|---|---|---|---|---|")
    for busy in BUSY:
        stage = measured(busy, seconds)
        client, latency = stage["client"], stage["latency"]
        words = ", ".join(stage["verdict"]["words"]) or "VALID"
        added = [f"{latency[name] / true_s - 1:.0%}" for name in ("p50_s", "p99_s")]
        print(
            f"| {busy:.0%} | {client['cpu_share_max']:.0%} "
            f"| {client['loop_lag_p50_s'] * 1e3:.1f} ms | {' | '.join(added)} "
            f"| {stage['lateness']['p99_s'] * 1e3:.1f} ms | {words} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
