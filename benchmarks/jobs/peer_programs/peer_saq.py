"""saq: asynchronous workers in one process, Redis."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

from common import URL as SERVICE
from common import main
from saq import Queue, Worker

# RQ empties database 0.
URL = f"{SERVICE}/3"


async def nothing(context: Any, n: int) -> int:
    return n


def prepare() -> None:
    """Nothing is left from before: the Redis is new."""


def latency(count: str) -> list[float]:
    """Asked every half millisecond: `Queue.apply` missed the end of some jobs for good."""

    async def measure() -> list[float]:
        queue = Queue.from_url(URL)
        await queue.connect()
        took = []
        for number in range(int(count)):
            began_s = time.perf_counter()
            job = await queue.enqueue("nothing", n=number)
            assert job is not None
            while not job.completed:
                await asyncio.sleep(0.0005)
                await job.refresh()
            assert job.result == number
            took.append((time.perf_counter() - began_s) * 1000)
        await queue.disconnect()
        return took

    return asyncio.run(measure())


def rate(count: str) -> float:
    async def measure() -> float:
        queue = Queue.from_url(URL)
        await queue.connect()
        before = await _completed(queue)
        began_s = time.perf_counter()
        for number in range(int(count)):
            await queue.enqueue("nothing", n=number, ttl=600)
        while await queue.count("incomplete"):  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.01)
        took_s = time.perf_counter() - began_s
        assert await _completed(queue) - before == int(count)
        await queue.disconnect()
        return int(count) / took_s

    return asyncio.run(measure())


async def _completed(queue: Any) -> int:
    keys = [key async for key in queue.redis.scan_iter(match="saq:job:default:*", count=5000)]
    return len(keys)


def work() -> None:
    asyncio.run(Worker(Queue.from_url(URL), functions=[nothing], concurrency=10).start())
    sys.exit(0)


if __name__ == "__main__":
    main(prepare=prepare, latency=latency, rate=rate, work=work)
