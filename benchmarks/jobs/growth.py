"""P18: the cost of a claim as ended jobs pile up: 10, 10,000 and 1,000,000 of them in the store.

    python benchmarks/jobs/growth.py [--ended 1000000]

The ended jobs are copies of what the store itself wrote (`ended_jobs.py`). Claims, lists and counts
are then timed through the store, in turn on all three, and submit to result through a server on the
smallest and the largest. At last retention removes a hundredth of the large one while claims go on.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import sqlite3
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from ended_jobs import TEMPLATES, fill
from harness import ROUNDS, Rounds, Server, header, percentile, row, scratch, title, verdict
from latency import by_sdk

from headway.core.clock import SystemClock
from headway.core.statedir import StateDir
from headway.core.states import JobState, Outcome
from headway.dispatch.retention import Retention
from headway.dispatch.worker_main import SWITCH_INTERVAL_S
from headway.store.attempts import Finish
from headway.store.jobs import JobQuery, RetentionRule, StoredResult
from headway.store.sqlite.store import SqliteStore
from headway.store.submissions import NewJob

FLAT = 1.5
SIZES = (10, 10_000)
SAMPLES = 200
LIVE = NewJob(operation="nothing", lane="short", input_json='{"n": 1}')


# --- measurements ----------------------------------------------------------------------------


async def took_ms(call: Callable[[], Awaitable[object]], samples: int = SAMPLES) -> float:
    """The median of some calls."""
    took = []
    for _ in range(samples):
        began_s = time.perf_counter()
        await call()
        took.append((time.perf_counter() - began_s) * 1000)
    return statistics.median(took)


async def claim_ms(store: SqliteStore) -> float:
    """The median of claims of one job from a queue of SAMPLES."""
    await store.submit([LIVE] * SAMPLES)
    latency = await took_ms(lambda: store.claim("bench", {"short": 1}, 3600))
    claims = await store.running("bench")
    assert len(claims) == SAMPLES
    done = Finish(outcome=Outcome.SUCCEEDED, result=StoredResult(json="null"))
    await asyncio.gather(*(store.end_attempt(claim, done) for claim in claims))
    return latency


async def measured_store(directories: dict[int, Path]) -> dict[str, dict[int, Rounds]]:
    """What the store's calls take, by call and number of ended jobs."""
    found: dict[str, dict[int, Rounds]] = {}
    stores = {size: _store(directory)[0] for size, directory in directories.items()}
    for store in stores.values():
        await store.open()
    for _ in range(ROUNDS):
        for size, store in stores.items():
            for name, value in (await _calls(store)).items():
                found.setdefault(name, {}).setdefault(size, Rounds(3)).add(value)
    for store in stores.values():
        await store.close()
    return found


async def _calls(store: SqliteStore) -> dict[str, float]:
    failed = JobQuery(states=(JobState.FAILED,), limit=50)
    operation = JobQuery(operation="op3", limit=50)
    labelled = JobQuery(labels={"team": "team1"}, limit=50)
    return {
        "claim": await claim_ms(store),
        "newest 50": await took_ms(lambda: store.list_jobs(JobQuery(limit=50))),
        "newest 50 that failed": await took_ms(lambda: store.list_jobs(failed)),
        "newest 50 of an operation": await took_ms(lambda: store.list_jobs(operation)),
        "newest 50 with a label": await took_ms(lambda: store.list_jobs(labelled)),
        "counts for /metrics": await took_ms(store.counts),
    }


async def while_retention_runs(directory: Path, keep: int) -> tuple[float, float, int, float]:
    """p50 and p99 of claims while retention removes jobs, how many it removed, and in what time."""
    store, state_dir = _store(directory)
    await store.open()
    retention = Retention(store, state_dir, [RetentionRule(max_jobs=keep)])
    sys.setswitchinterval(SWITCH_INTERVAL_S)  # as in the worker process, which runs both
    before = sum(each.jobs for each in (await store.counts()).ended)
    began_s = time.monotonic()
    removing = asyncio.create_task(retention.run())
    took: list[float] = []
    done = Finish(outcome=Outcome.SUCCEEDED, result=StoredResult(json="null"))
    while not removing.done():
        await store.submit([LIVE])
        claim_s = time.perf_counter()
        [claimed] = await store.claim("bench", {"short": 1}, 3600)
        took.append((time.perf_counter() - claim_s) * 1000)
        await store.end_attempt(claimed.claim, done)
        await asyncio.sleep(0.005)
    await removing
    took_s = time.monotonic() - began_s
    with contextlib.closing(sqlite3.connect(state_dir.database)) as connection:
        left = connection.execute("SELECT count(*) FROM jobs").fetchone()[0]
    await store.close()
    return percentile(took, 50), percentile(took, 99), before + len(took) - left, took_s


def _store(directory: Path) -> tuple[SqliteStore, StateDir]:
    state_dir = StateDir(directory)
    return SqliteStore(state_dir, SystemClock(), random.Random(1)), state_dir


def through_server(directories: dict[int, Path]) -> dict[int, Rounds]:
    """Median of submit to result, by number of ended jobs."""
    found = {size: Rounds(2) for size in directories}
    servers = {size: Server(directory) for size, directory in directories.items()}
    for _ in range(ROUNDS):
        for size, measured in servers.items():
            found[size].add(statistics.median(by_sdk(measured, "nothing", SAMPLES)))
    for measured in servers.values():
        measured.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--ended", type=int, default=1_000_000)
    ended = parser.parse_args().ended
    title("P18: costs as ended jobs pile up")
    with contextlib.ExitStack() as stack:
        directories = {size: stack.enter_context(scratch()) for size in (*SIZES, ended)}
        for size, directory in directories.items():
            began_s = time.monotonic()
            asyncio.run(fill(directory, max(size, TEMPLATES)))
        bytes_ = StateDir(directories[ended]).database.stat().st_size
        print(f"{ended:,} ended jobs: {bytes_ / 1e6:,.0f} MB, "
              f"written in {time.monotonic() - began_s:.0f} s.\n")  # fmt: skip
        found = asyncio.run(measured_store(directories))
        http = through_server({size: directories[size] for size in (SIZES[0], ended)})
        kept = asyncio.run(while_retention_runs(directories[ended], ended * 99 // 100))
    header("what, ms", *(f"{size:,}" for size in directories), "largest ÷ smallest")
    for name, by_size in found.items():
        ratio = by_size[ended].median / by_size[SIZES[0]].median
        row(name, *by_size.values(), f"{ratio:.2f}")
    ratio = http[ended].median / http[SIZES[0]].median
    row("submit to result over HTTP", http[SIZES[0]], "", http[ended], f"{ratio:.2f}")
    p50, p99, removed, took_s = kept
    print(f"\nWhile retention removed {removed:,} jobs in {took_s:.0f} s, claims took "
          f"{p50:.2f} ms (p50) and {p99:.2f} ms (p99).")  # fmt: skip
    claims = found["claim"]
    medians = [claims[size].median for size in directories]
    ratio = max(medians) / medians[0]
    text = (
        f"claims {', '.join(f'{each:.2f}' for each in medians)} ms = {ratio:.2f} ×, at most {FLAT}"
    )
    verdict("P18", text, ratio <= FLAT)


if __name__ == "__main__":
    main()
