"""How long and how much memory the report of a million requests takes (P7).

    python benchmarks/report_million.py [--requests 1000000] [--chunks 20]

Writes a run directory of streamed requests under a temporary directory, reports it in a process of
its own, and prints that process's CPU seconds and peak memory. A loop over plain integers is timed
beside it, so that a number from a busy or a slow machine can be told from a slow report.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from headway.records.record import RequestRecord, StageEnded, StageStarted
from headway.records.run_dir import RunDirectory, RunFile

RATE_PER_S = 1000
BATCH = 10_000

REPORT = """
import json, resource, sys, time
from pathlib import Path
from headway.records.run_dir import RunDirectory
from headway.report import build

report = build(RunDirectory(Path(sys.argv[1])))
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({
    "requests": report.stages[0].counts.completed,
    "cpu_s": round(usage.ru_utime + usage.ru_stime, 1),
    "peak_mib": usage.ru_maxrss // 1024,
}))
"""


def write_run(path: Path, requests: int, chunks: int) -> None:
    rng = random.Random(1)
    directory = RunDirectory.create(
        path, RunFile(run_id="bench", created="2026-01-01T00:00:00Z", seed=1, spec={})
    )
    directory.append_event(
        StageStarted(
            stage=0,
            name=f"constant {RATE_PER_S}/s",
            profile={"kind": "constant", "rate": [RATE_PER_S]},
            started_wall="2026-01-01T00:00:00Z",
            started_monotonic_ns=0,
            workers=1,
        )
    )
    for start in range(0, requests, BATCH):
        batch = range(start, min(start + BATCH, requests))
        lines = (msgspec.json.encode(record(index, chunks, rng)) + b"\n" for index in batch)
        directory.append_records(b"".join(lines))
    end_ns = requests * 10**9 // RATE_PER_S
    directory.append_event(
        StageEnded(
            stage=0,
            at_ns=end_ns,
            sending_ended_ns=end_ns,
            reason="schedule_ended",
            offered=requests,
        )
    )
    directory.close()


def record(index: int, chunks: int, rng: random.Random) -> RequestRecord:
    due = index * 10**9 // RATE_PER_S
    sent = due + int(rng.expovariate(5_000) * 1e9)
    first = sent + int((0.02 + rng.expovariate(100)) * 1e9)
    gaps = [int(rng.uniform(4e6, 6e6)) for _ in range(chunks - 1)]
    return RequestRecord(
        stage=0,
        index=index,
        status="completed",
        due_ns=due,
        sent_ns=sent,
        first_byte_ns=first,
        first_token_ns=first,
        first_content_ns=first,
        last_token_ns=first + sum(gaps),
        done_ns=first + sum(gaps),
        chunks=chunks,
        gaps_ns=gaps,
        input_tokens=256,
        output_tokens=chunks,
        output_tokens_source="usage",
    )


def yardstick_s() -> float:
    began = time.process_time()
    sum(i * 2 for i in range(10_000_000))
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--chunks", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        write_run(path, options.requests, options.chunks)
        size = (path / "records.jsonl").stat().st_size
        command = [sys.executable, "-c", REPORT, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    print(f"{result['requests']:,} requests, {size / 1e6:.0f} MB of records")
    print(f"report: {result['cpu_s']} s of CPU, peak {result['peak_mib']} MiB")
    print(f"yardstick (10,000,000 additions): {yardstick_s():.2f} s of CPU")


if __name__ == "__main__":
    main()
