"""P13: what an idle server takes, and what a burst of 10,000 jobs leaves.

    python benchmarks/jobs/idle.py [--burst 10000]

Memory is the proportional set size of the API process, the worker, the forkserver and the idle job
processes together; CPU is theirs too, over 20 s in which nobody asks for anything.
"""

from __future__ import annotations

import argparse
import threading
import time

from harness import (
    ROUNDS,
    Rounds,
    Server,
    cpu_s,
    header,
    pss_mib,
    row,
    server,
    title,
    verdict,
    wait_idle,
)
from rates import in_batches

MIB = 180.0
CPU_PERCENT = 1.0
IDLE_S = 20.0
GROWTH_MIB = 10.0


def idle_cpu_percent(measured: Server) -> float:
    pids = measured.pids()
    before_s = cpu_s(pids)
    time.sleep(IDLE_S)
    return (cpu_s(pids) - before_s) / IDLE_S * 100


class Peak:
    """The largest memory while something runs."""

    def __init__(self, measured: Server) -> None:
        self.mib = 0.0
        self._measured = measured
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(0.5):
            self.mib = max(self.mib, pss_mib(self._measured.pids()))

    def stop(self) -> float:
        self._over.set()
        self._thread.join()
        return self.mib


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--burst", type=int, default=10_000)
    burst = parser.parse_args().burst
    title("P13: an idle server")
    cpu, memory = Rounds(2), Rounds()
    with server() as measured:
        time.sleep(5)
        for _ in range(ROUNDS):
            cpu.add(idle_cpu_percent(measured))
            memory.add(pss_mib(measured.pids()))
        processes = len(measured.pids())
        after: list[float] = []
        peaks: list[float] = []
        for _ in range(2):
            peak = Peak(measured)
            in_batches(measured, burst)
            wait_idle(measured.port)
            peaks.append(peak.stop())
            time.sleep(2)
            after.append(pss_mib(measured.pids()))
    header("what", "measured")
    row("processes", processes)
    row("CPU while idle, % of a core", cpu)
    row("memory while idle, MiB", memory)
    row(f"largest while a burst of {burst:,} runs, MiB", _list(peaks))
    row("2 s after the first and the second burst, MiB", _list(after))
    verdict("P13", f"{memory.median:.0f} MiB idle, at most {MIB:.0f}", memory.median <= MIB)
    grown = after[1] - after[0]
    text = f"{peaks[1]:.0f} MiB at most in the second burst, {grown:+.1f} MiB kept, at most "
    verdict(
        "P13", f"{text}{MIB:.0f} and {GROWTH_MIB:+.0f}", max(peaks) <= MIB and grown <= GROWTH_MIB
    )
    verdict(
        "P13",
        f"{cpu.median:.2f}% of a core idle, at most {CPU_PERCENT:g}",
        cpu.median <= CPU_PERCENT,
    )


def _list(values: list[float]) -> str:
    return ", ".join(f"{value:.0f}" for value in values)


if __name__ == "__main__":
    main()
