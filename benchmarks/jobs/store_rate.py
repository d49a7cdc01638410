"""How fast the store is by itself, every commit synced: the part that it has in P11.

    python benchmarks/jobs/store_rate.py [--jobs 5000]

Prints a markdown table: operations a second. Runs in a temporary directory of the file system that
TMPDIR names; a memory file system flatters it. What ended jobs cost it: `growth.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from headway.core.clock import SystemClock
from headway.core.statedir import StateDir
from headway.core.states import Outcome
from headway.store.attempts import Finish
from headway.store.jobs import StoredResult
from headway.store.sqlite.store import SqliteStore
from headway.store.submissions import NewJob

JOB = NewJob(operation="op0", lane="short", input_json='{"x": 1}')
DONE = Finish(outcome=Outcome.SUCCEEDED, result=StoredResult(json="null"))
CONCURRENCY = 64


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


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=5000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        state_dir = StateDir(Path(directory))
        store = SqliteStore(state_dir, SystemClock(), random.Random(1))
        await store.open()
        await rates(store, options.jobs)
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


if __name__ == "__main__":
    asyncio.run(main())
