"""P15 and P16: what a killed job process and a killed server cost.

    python benchmarks/jobs/crashes.py [P15|P16] [--jobs 10]

P15: from SIGKILL for a running job's process to the first instruction of its next attempt. P16:
kill -9 for every process of the server with 1,000 jobs queued and 4 running, then start it again;
each job notes that it runs in a file, the store's history tells how often it ended.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

from harness import (
    ROUNDS,
    Rounds,
    Server,
    header,
    log_lines,
    row,
    scratch,
    server,
    title,
    verdict,
    wait_idle,
    wait_until,
)

from headway.client import Client, JobRequest

AGAIN_MS = 300.0
SERVING_S = 2.0
QUEUED, RUNNING = 1000, 4


def again_ms(client: Client) -> float:
    job = client.submit("killed")
    [pid] = log_lines(client, job.id, 1)
    killed_ns = time.monotonic_ns()
    os.kill(int(pid), signal.SIGKILL)
    began_ns = client.result(job.id, int, timeout_s=30)
    return (began_ns - killed_ns) / 1e6


def next_attempt(jobs: int) -> None:
    title("P15: a job's process killed, to its next attempt")
    took = Rounds()
    with server() as measured, measured.client() as client:
        for _ in range(ROUNDS * jobs):
            took.add(again_ms(client))
    header("what", "ms: median (spread)", "kills")
    row("SIGKILL to the first instruction of the next attempt", took, len(took.values))
    text = f"{took.median:.0f} ms (largest {max(took.values):.0f}), at most {AGAIN_MS:.0f}"
    verdict("P15", text, max(took.values) <= AGAIN_MS)


def killed_server(directory: Path) -> dict[str, float]:
    """Kill a busy server, start it again, count."""
    notes = directory / "notes"
    notes.touch()
    first = Server(directory)
    with first.client() as client:
        for _ in range(RUNNING):
            client.submit("noted", {"file": str(notes), "first_waits": True})
        wait_until(lambda: len(notes.read_text().splitlines()) == RUNNING, 30)
        requests = [
            JobRequest(operation="noted", input={"file": str(notes)}) for _ in range(QUEUED)
        ]
        client.submit_batch(requests)
    first.kill_everything()
    first.stop()
    second = Server(directory)
    began_s = second.began_s
    wait_until(lambda: len(notes.read_text().splitlines()) > RUNNING, 30, 0.002)
    first_job_s = time.monotonic() - began_s
    wait_idle(second.port)
    emptied_s = time.monotonic() - began_s
    counts = _counts(second, notes)
    second.stop()
    return {"ready": second.ready_s, "first job": first_job_s, "emptied": emptied_s, **counts}


def _counts(measured: Server, notes: Path) -> dict[str, float]:
    runs = Counter(line.split()[0] for line in notes.read_text().splitlines())
    every = QUEUED + RUNNING
    ended = "SELECT sequence FROM events WHERE kind = 'ended' GROUP BY sequence"
    return {
        "lost": every - measured.count("SELECT count(*) FROM jobs WHERE state = 'SUCCEEDED'"),
        "double": measured.count(f"SELECT count(*) FROM ({ended} HAVING count(*) > 1)"),
        # The running ones run a second time; a queued one never does.
        "ran": sum(runs.values()) - every - RUNNING,
    }


def everything() -> None:
    title(f"P16: kill -9 of everything, {QUEUED:,} queued and {RUNNING} running")
    found: dict[str, Rounds] = {}
    for _ in range(ROUNDS):
        with scratch() as directory:
            for name, value in killed_server(directory).items():
                found.setdefault(name, Rounds(2)).add(value)
    header("what", f"median (spread) of {ROUNDS}")
    row("start to ready, s", found["ready"])
    row("start to the first queued job's first instruction, s", found["first job"])
    row("start to an empty queue, s", found["emptied"])
    row("jobs lost", _whole(found["lost"]))
    row("jobs with two outcomes", _whole(found["double"]))
    row("attempts beyond one for a queued and two for a running job", _whole(found["ran"]))
    bad = sum(abs(value) for name in ("lost", "double", "ran") for value in found[name].values)
    text = f"{bad:.0f} jobs lost, doubled or run too often; at most 0"
    verdict("P16", text, bad == 0)
    ready = found["ready"].median
    verdict("P16", f"serving after {ready:.1f} s, at most {SERVING_S:g}", ready <= SERVING_S)


def _whole(rounds: Rounds) -> Any:
    return ", ".join(f"{value:.0f}" for value in rounds.values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("budgets", nargs="*", default=["P15", "P16"])
    parser.add_argument("--jobs", type=int, default=10)
    options = parser.parse_args()
    if "P15" in options.budgets:
        next_attempt(options.jobs)
    if "P16" in options.budgets:
        everything()


if __name__ == "__main__":
    main()
