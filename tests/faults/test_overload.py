"""Jobs that come faster than they can run: bounded memory, honest refusals, recovery at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import httpx
import psutil
import pytest
from fault_server import start, submit, titled
from job_servers import JobServer, StartServer

from headway.core.clock import monotonic_ns, ns_from_s

SUBMITTERS = 64
STORM_S = 3.0
TEXT = "x" * 4000
GROWTH_BYTES = 150 * 1024 * 1024
"""The storm brings several times that, and what it brings lies on the disk."""

pytestmark = pytest.mark.timeout(300)


class Storm:
    """Clients that submit without a pause and without patience."""

    def __init__(self, server: JobServer) -> None:
        self._server = server
        self.answers: Counter[int] = Counter()
        self.without_advice = 0
        self.grown_bytes = [0, 0]

    async def rage(self, seconds: float) -> None:
        until_ns = monotonic_ns() + ns_from_s(seconds)
        limits = httpx.Limits(max_connections=SUBMITTERS + 1)
        async with httpx.AsyncClient(
            base_url=self._server.url, limits=limits, timeout=60, trust_env=False
        ) as http:
            submitters = [self._submit(http, until_ns, number) for number in range(SUBMITTERS)]
            await asyncio.gather(self._watch(until_ns), *submitters)

    async def _submit(self, http: httpx.AsyncClient, until_ns: int, number: int) -> None:
        job = {"operation": "quick", "input": {"number": number, "text": TEXT}}
        while monotonic_ns() < until_ns:
            answer = await http.post("/v1/jobs:batch", json={"jobs": [job] * 50})
            self.answers[answer.status_code] += 1
            if answer.status_code in (429, 503):
                self.without_advice += "retry-after" not in answer.headers
                await asyncio.sleep(0.1)

    async def _watch(self, until_ns: int) -> None:
        pids = (self._server.pid, titled(self._server, "headway: worker"))
        processes = [psutil.Process(pid) for pid in pids]
        before = [process.memory_info().rss for process in processes]
        while monotonic_ns() < until_ns:
            now = [process.memory_info().rss for process in processes]
            grown = [after - first for after, first in zip(now, before, strict=True)]
            self.grown_bytes = [max(pair) for pair in zip(grown, self.grown_bytes, strict=True)]
            await asyncio.sleep(0.1)


async def test_a_storm_of_submissions_is_taken_in_or_refused_and_costs_no_memory(
    start_server: StartServer,
) -> None:
    server = start(start_server)
    storm = Storm(server)
    await storm.rage(STORM_S)
    assert set(storm.answers) <= {200, 201, 202, 429, 503}, storm.answers
    taken = sum(count for status, count in storm.answers.items() if status < 300)
    assert taken > 0
    assert storm.without_advice == 0
    assert max(storm.grown_bytes) < GROWTH_BYTES, storm.grown_bytes
    with server.client() as client:
        # What comes after it waits behind no request of it, only behind jobs in its lane.
        (other,) = submit(client, "work", 1, seconds=0.01)
        assert client.wait(other, timeout_s=60).outcome == "succeeded"
        assert live_jobs(server) > 0, "the storm did bring more than can run"


async def test_a_full_queue_refuses_and_takes_in_again_when_there_is_room(
    start_server: StartServer,
) -> None:
    """The bound that an administrator sets; nothing of a refused batch is kept."""
    server = start(start_server)
    async with httpx.AsyncClient(base_url=server.url, timeout=60, trust_env=False) as http:
        put = await http.put("/v1/limits/workspaces/default", json={"max_queued": 20})
        assert put.status_code < 300, put.text
        batch: dict[str, Any] = {"jobs": [{"operation": "work", "input": {"seconds": 0.01}}] * 15}
        answers = [await http.post("/v1/jobs:batch", json=batch) for _ in range(3)]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert refused, [answer.status_code for answer in answers]
        assert all(float(answer.headers["retry-after"]) > 0 for answer in refused)
    with server.client() as client:  # it has patience, and the queue drains
        jobs = submit(client, "quick", 5)
        assert all(client.wait(job, timeout_s=60).outcome == "succeeded" for job in jobs)


def live_jobs(server: JobServer) -> int:
    page = httpx.get(f"{server.url}/v1/jobs?state=PENDING&limit=1", trust_env=False).json()
    return len(page["jobs"])
