"""P11: no-op jobs a second over HTTP, every one durable with its result stored.

    [PEERS=1] python benchmarks/jobs/rates.py [--jobs 2000]

Singly: eight connections that post one job a request. In batches: `Client.submit_batch`, 100 jobs
a request. The clock runs from the first request until every job has ended; then the rows and
results in the store are counted. Peers: their own client; Celery with a Redis that syncs each write
is what is as durable as Headway, the one that syncs every second is what is usual.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import peers
from harness import ROUNDS, Poster, Rounds, Server, header, row, server, title, verdict, wait_idle

from headway.client import JobRequest

SINGLY = 400.0
BATCH = 100
WIDER = "4+12"
"""Twice the slots of two cores: more jobs share a commit, for a warm process more to two slots."""


def singly(measured: Server, jobs: int) -> float:
    poster = Poster(measured.port, "nothing")
    began_s = time.perf_counter()
    poster.post(jobs)
    wait_idle(measured.port)
    return jobs / (time.perf_counter() - began_s)


def in_batches(measured: Server, jobs: int, operation: str = "nothing") -> float:
    with measured.client() as client:
        client.operations()  # connects
        began_s = time.perf_counter()
        for start in range(0, jobs, BATCH):
            numbers = range(start, min(jobs, start + BATCH))
            client.submit_batch(JobRequest(operation=operation, input={"n": n}) for n in numbers)
        wait_idle(measured.port)
        return jobs / (time.perf_counter() - began_s)


def check(measured: Server, jobs: int) -> None:
    """Every job is there, has ended, and its result is stored."""
    ended = measured.count("SELECT count(*) FROM jobs WHERE state = 'SUCCEEDED'")
    results = measured.count("SELECT count(*) FROM results WHERE json IS NOT NULL")
    assert ended == results == jobs, (ended, results, jobs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--jobs", type=int, default=2000)
    jobs = parser.parse_args().jobs
    title("P11: short lane, no-op jobs a second")
    names = peers.wanted(["celery", "saq", "rq", "procrastinate"])
    found: dict[str, Rounds] = {}
    with (
        server() as measured,
        server("--short", WIDER) as wider,
        peers.running(names) as usual,
        peers.running(["celery"], "always") as durable,
    ):
        sources: dict[str, Callable[[], float]] = {
            "Headway, singly": lambda: singly(measured, jobs),
            "Headway, in batches": lambda: in_batches(measured, jobs),
            f"Headway, in batches, `--short {WIDER}`": lambda: in_batches(wider, jobs),
        }
        for peer in (*usual.values(), *durable.values()):
            sources[str(peer)] = lambda peer=peer: float(peer.ask("rate", jobs))  # type: ignore[misc]
        found = {name: Rounds(0) for name in sources}
        for _ in range(ROUNDS):
            for name, source in sources.items():
                found[name].add(source())
        check(measured, 2 * ROUNDS * jobs)
        check(wider, ROUNDS * jobs)
        celery = next((found[str(peer)] for peer in usual.values() if peer.name == "celery"), None)
    batches = found["Headway, in batches"].median
    header("who", "jobs a second", "Headway in batches ÷ it", "jobs")
    for name, rate in found.items():
        row(name, rate, f"{batches / rate.median:.2f}", f"{ROUNDS} × {jobs}")
    one = found["Headway, singly"].median
    verdict("P11", f"singly {one:.0f}/s, at least {SINGLY:.0f}", one >= SINGLY)
    if celery is not None:
        ratio = batches / celery.median
        text = f"in batches {batches:.0f}/s = {ratio:.2f} × Celery, at least 1.0"
        verdict("P11", text, ratio >= 1)


if __name__ == "__main__":
    main()
