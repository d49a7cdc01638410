"""What job processes cost, without HTTP and store: the part that execution has in P10, P12 and P14.

python benchmarks/jobs/processes.py [--attempts N]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from headway.core.clock import SystemClock
from headway.core.statedir import StateDir
from headway.core.states import Lane
from headway.execution.attempt import AttemptPlan, AttemptResult, KillMeans, Limits
from headway.execution.settings import SupervisorSettings
from headway.execution.supervisor import Supervisor

OPERATIONS = """
import os, signal, subprocess, sys, time
from headway.jobs import operation

@operation(lane="short")
def nothing(job, n: int = 0) -> int:
    return n

@operation
def waits(job) -> None:
    print("up", flush=True)
    time.sleep(600)

@operation
def ignores(job) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    code = "import os,signal,time; signal.signal(15, signal.SIG_IGN); os.fork(); time.sleep(600)"
    subprocess.Popen([sys.executable, "-S", "-c", code], start_new_session=True)
    print("up", flush=True)
    time.sleep(600)
"""


class Printed:
    """An observer that waits for the first output."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    def may_write(self) -> bool:
        return True

    def on_started(self, pid: int) -> None: ...

    def on_progress(self, progress: Any) -> None: ...

    def on_artifact(self, artifact: Any) -> None: ...

    def on_log_growth(self, size_bytes: int) -> None:
        self.event.set()


def row(name: str, values_ms: list[float]) -> None:
    values = sorted(values_ms)
    p99 = values[min(len(values) - 1, int(len(values) * 0.99))]
    print(f"| {name} | {statistics.median(values):.2f} | {p99:.2f} | {len(values)} |", flush=True)


class Bench:
    def __init__(self, supervisor: Supervisor) -> None:
        self.supervisor = supervisor
        self.number = 0

    def plan(self, operation: str, lane: Lane) -> AttemptPlan:
        self.number += 1
        return AttemptPlan(f"b{self.number}", 1, operation, lane, b"{}", limits=Limits())

    async def once(self, lane: Lane) -> AttemptResult:
        running = await self.supervisor.start(self.plan("nothing", lane))
        return await running.wait()

    async def latency(self, lane: Lane, count: int) -> None:
        total, first = [], []
        for _ in range(count):
            begun = time.perf_counter()
            result = await self.once(lane)
            total.append((time.perf_counter() - begun) * 1000)
            line = result.timeline
            assert line.ran_ns is not None, result
            first.append((line.ran_ns - line.requested_ns) / 1e6)
        row(f"{lane.value} lane: start to result", total)
        row(f"{lane.value} lane: start to first instruction of the function", first)

    async def rate(self, lane: Lane, count: int, concurrent: int) -> None:
        left = iter(range(count))

        async def client() -> None:
            for _ in left:
                await self.once(lane)

        begun = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(concurrent)))
        rate = count / (time.perf_counter() - begun)
        print(f"| {lane.value} lane, {concurrent} at a time: attempts/s | {rate:.0f} | | {count} |")

    async def cancel(self, operation: str, grace_s: float, count: int) -> None:
        times = []
        for _ in range(count):
            observer = Printed()
            running = await self.supervisor.start(self.plan(operation, Lane.LONG), observer)
            await observer.event.wait()
            begun = time.perf_counter()
            await running.cancel(grace_s)
            times.append((time.perf_counter() - begun - grace_s * (operation == "ignores")) * 1000)
        means = self.supervisor.kill_means.value
        row(f"cancel to whole tree dead, {operation} ({means})", times)


async def main(attempts: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        module = Path(directory) / "benchmark_operations.py"
        module.write_text(OPERATIONS)
        print("| what | p50 (ms) | p99 (ms) | n |\n|---|---|---|---|")
        for means in (None, KillMeans.SUBREAPER):
            settings = SupervisorSettings(
                modules=(str(module),),
                kill_means=means,
                warm_processes=4,
                warm_max_jobs=10**9,
            )
            begun = time.perf_counter()
            async with Supervisor(settings, StateDir(Path(directory) / "s"), SystemClock()) as one:
                bench = Bench(one)
                row("supervisor: open", [(time.perf_counter() - begun) * 1000])
                if means is None:
                    await bench.latency(Lane.SHORT, attempts)
                    await bench.rate(Lane.SHORT, attempts * 4, 4)
                    await bench.latency(Lane.LONG, attempts // 2)
                    await bench.rate(Lane.LONG, attempts, 4)
                await bench.cancel("waits", 10, 20)
                await bench.cancel("ignores", 0.2, 10)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attempts", type=int, default=500)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    if arguments.profile:
        import cProfile

        cProfile.run("asyncio.run(main(arguments.attempts))", sort="tottime")
    else:
        asyncio.run(main(arguments.attempts))
    sys.exit(0)
