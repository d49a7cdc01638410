"""Procrastinate: PostgreSQL, asynchronous worker in one process."""

from __future__ import annotations

import asyncio
import sys
import time

from common import URL, main
from procrastinate import App, PsycopgConnector

app = App(connector=PsycopgConnector(conninfo=URL))


@app.task(name="nothing", pass_context=False)
async def nothing(n: int) -> int:
    return n


def prepare() -> None:
    async def apply() -> None:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    asyncio.run(apply())


def latency(count: str) -> list[float]:
    """It keeps no results: until the job is marked as succeeded, asked every millisecond."""

    async def measure() -> list[float]:
        took = []
        async with app.open_async():
            for number in range(int(count)):
                began_s = time.perf_counter()
                job_id = await nothing.defer_async(n=number)
                while await _left(job_id):  # noqa: ASYNC110 - there is no event for it
                    await asyncio.sleep(0.001)
                took.append((time.perf_counter() - began_s) * 1000)
        return took

    return asyncio.run(measure())


def rate(count: str) -> float:
    async def measure() -> float:
        async with app.open_async():
            began_s = time.perf_counter()
            for start in range(0, int(count), 100):
                stop = min(int(count), start + 100)
                await nothing.batch_defer_async(*({"n": number} for number in range(start, stop)))
            while await _left(None):  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.02)
            return int(count) / (time.perf_counter() - began_s)

    return asyncio.run(measure())


async def _left(job_id: int | None) -> int:
    row = await app.connector.execute_query_one_async(
        "SELECT count(*) AS jobs FROM procrastinate_jobs"
        " WHERE status IN ('todo', 'doing') AND (%(id)s::bigint IS NULL OR id = %(id)s)",
        id=job_id,
    )
    return int(row["jobs"])


def work() -> None:
    async def run() -> None:
        async with app.open_async():
            await app.run_worker_async(concurrency=10)

    asyncio.run(run())
    sys.exit(0)


if __name__ == "__main__":
    main(prepare=prepare, latency=latency, rate=rate, work=work)
