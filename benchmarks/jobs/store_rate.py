"""How fast the store is, and whether it stays so as ended jobs pile up (P11, P18).

    python benchmarks/jobs/store_rate.py [--ended 1000000] [--jobs 5000]

Prints a markdown table: operations a second with every commit synced, and the median latency of a
claim and of a list page with 10, 10,000 and --ended ended jobs in the store. Runs in a temporary
directory of the file system that TMPDIR names; a memory file system flatters it.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from headway.core.clock import SystemClock
from headway.core.statedir import StateDir
from headway.core.states import JobState, Outcome
from headway.store.sqlite.store import SqliteStore
from headway.store.values import Finish, JobQuery, NewJob, StoredResult

JOB = NewJob(operation="op0", lane="short", input_json='{"x": 1}')
DONE = Finish(outcome=Outcome.SUCCEEDED, result=StoredResult(json="null"))
CONCURRENCY = 64
SAMPLES = 200


async def concurrently(count: int, call: Callable[[], Awaitable[object]]) -> float:
    """Calls a second, CONCURRENCY at a time."""
    left = iter(range(count))

    async def client() -> None:
        for _ in left:
            await call()

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(CONCURRENCY)))
    return count / (time.perf_counter() - began)


async def claim_and_finish(store: SqliteStore) -> float:
    """Jobs a second through claims of four and single finishes, as four busy slots do it."""
    done = 0
    began = time.perf_counter()
    while claimed := await store.claim("bench", {"short": 4}, 60):
        await asyncio.gather(*(store.end_attempt(each.claim, DONE) for each in claimed))
        done += len(claimed)
    return done / (time.perf_counter() - began)


async def median_ms(call: Callable[[], Awaitable[object]]) -> float:
    took = []
    for _ in range(SAMPLES):
        began = time.perf_counter()
        await call()
        took.append(time.perf_counter() - began)
    return statistics.median(took) * 1000


async def claim_latency_ms(store: SqliteStore) -> float:
    """Median of a claim of one job out of a short queue."""
    await store.submit([JOB] * SAMPLES)
    latency = await median_ms(lambda: store.claim("bench", {"short": 1}, 3600))
    for claim in await store.running("bench"):
        await store.end_attempt(claim, DONE)
    return latency


def add_ended(database: Path, count: int) -> None:
    """Ended jobs in bulk, as the store leaves them."""
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        start = connection.execute("SELECT coalesce(max(sequence), 0) FROM jobs").fetchone()[0]
        connection.executemany(
            "INSERT INTO jobs (id, operation, lane, workspace, created_by, state, priority,"
            " attempt, created_at_us, started_at_us, ended_at_us, outcome, kept_bytes)"
            " VALUES (?, ?, 'short', 'default', 'local', ?, 0, 1, 0, 0, ?, ?, 10)",
            (
                (f"{start + n:026d}", f"op{n % 7}", *_end(n), )
                for n in range(count)
            ),
        )  # fmt: skip
        connection.commit()


def _end(n: int) -> tuple[str, int, str]:
    if n % 10:
        return JobState.SUCCEEDED, n, Outcome.SUCCEEDED
    return JobState.FAILED, n, Outcome.FAILED


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--ended", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        state_dir = StateDir(Path(directory))
        store = SqliteStore(state_dir, SystemClock(), random.Random(1))
        await store.open()
        await rates(store, options.jobs)
        await growth(store, state_dir.database, (10, 10_000, options.ended))
        await store.close()


async def rates(store: SqliteStore, jobs: int) -> None:
    batches = max(1, jobs // 50)
    single = await concurrently(jobs, lambda: store.submit([JOB]))
    print("| what | a second |\n|---|---|")
    print(f"| submit, one by one, {CONCURRENCY} clients | {single:,.0f} |")
    print(f"| claim four, finish each | {await claim_and_finish(store):,.0f} |")
    batched = 50 * await concurrently(batches, lambda: store.submit([JOB] * 50))
    print(f"| submit, batches of 50, {CONCURRENCY} clients | {batched:,.0f} |\n")
    await claim_and_finish(store)


async def growth(store: SqliteStore, database: Path, sizes: tuple[int, ...]) -> None:
    print(
        "| ended jobs | claim, ms | list failed, ms | list one operation, ms |\n|---|---|---|---|"
    )
    ended = 0
    for size in sizes:
        await asyncio.to_thread(add_ended, database, size - ended)
        ended = size
        claim_ms = await claim_latency_ms(store)
        failed = JobQuery(states=(JobState.FAILED,), limit=50)
        failed_ms = await median_ms(lambda query=failed: store.list_jobs(query))  # type: ignore[misc]
        one = JobQuery(operation="op3", limit=50)
        one_ms = await median_ms(lambda query=one: store.list_jobs(query))  # type: ignore[misc]
        print(f"| {size:,} | {claim_ms:.2f} | {failed_ms:.2f} | {one_ms:.2f} |")


if __name__ == "__main__":
    asyncio.run(main())
