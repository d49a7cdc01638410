"""P3: how late an open loop sends, beside a bare timerfd loop in the same run.

Three senders share the machine one after another, several times, so that a busy moment hits all:
a bare loop that sleeps on a timerfd and does nothing; `headway` with the null backend; `headway`
against the simulated server (20 ms to the first token, then 20 chunks at 5 ms).

    python benchmarks/load/pacing.py [--rate 1000] [--seconds 5] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from headway.core.clock import NS_PER_S, monotonic_ns
from headway.load import RunSpec, run
from headway.load.pacing import TimerfdAlarm
from headway.records.run_dir import RunDirectory


def percentile_ms(values_ns, q):
    ordered = sorted(values_ns)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))] / 1e6


async def bare(rate, seconds):
    late, done = [], asyncio.Event()
    start = monotonic_ns() + 10_000_000
    state = {"next": 0}

    def due(index):
        return start + round(index * NS_PER_S / rate)

    def fire():
        now = monotonic_ns()
        while due(state["next"]) <= now:
            late.append(now - due(state["next"]))
            state["next"] += 1
        if state["next"] >= rate * seconds:
            done.set()
        else:
            alarm.set(due(state["next"]))

    alarm = TimerfdAlarm(fire)
    alarm.set(start)
    await done.wait()
    alarm.close()
    return late, 0.0


async def headway(rate, seconds, url=None):
    asked = {
        "target": {"url": url or "http://127.0.0.1:1"},
        "backend": {"kind": "openai-chat" if url else "null"},
        "inputs": {"kind": "synthetic", "prompt_tokens": 32, "output_tokens": 20},
        "profile": {"kind": "constant", "rate": [rate]},
        "limits": {"max_seconds": seconds},
        "calibrate": False,
        "workers": 1,
    }
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "run"
        await run(RunSpec.model_validate(asked), path)
        directory = RunDirectory(path)
        records = list(directory.records())
        samples = [e for e in directory.events() if type(e).__name__ == "WorkerSample"]
    used = sum(s.cpu_s for s in samples) / max(1e-9, sum(s.wall_s for s in samples))
    sent = [r.sent_ns - r.due_ns for r in records if r.sent_ns is not None]
    return sent, used / rate * 1_000


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=int, default=1_000)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    server = subprocess.Popen(
        f"{sys.executable} -m headway.sim --die-with-parent --ttft 0.02 --itl 0.005".split(),
        stdout=subprocess.PIPE,
    )
    url = json.loads(server.stdout.readline())["url"]
    senders = {
        "bare timerfd": lambda: bare(asked.rate, asked.seconds),
        "headway, null": lambda: headway(asked.rate, asked.seconds),
        "headway, sim": lambda: headway(asked.rate, asked.seconds, url),
    }
    rows = {name: [] for name in senders}
    for _ in range(asked.rounds):
        for name, sender in senders.items():
            late, cpu_s = asyncio.run(sender())
            p50, p99 = percentile_ms(late, 0.5), percentile_ms(late, 0.99)
            rows[name].append((p50, p99, cpu_s, len(late)))
    server.kill()
    server.wait()
    print(f"constant {asked.rate}/s, {asked.seconds} s, medians of {asked.rounds} rounds\n")
    print("| sender | late p50 ms | late p99 ms | CPU s per 1,000 | sent |")
    print("|---|---|---|---|---|")
    for name, measured in rows.items():
        p50, p99, cpu_s, sent = (
            statistics.median(column) for column in zip(*measured, strict=True)
        )
        print(f"| {name} | {p50:.3f} | {p99:.3f} | {cpu_s:.2f} | {sent:.0f} |")


if __name__ == "__main__":
    main()
