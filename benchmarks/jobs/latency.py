"""P10: from submitting a job to holding its result, short lane, idle server, over HTTP.

    [PEERS=1] python benchmarks/jobs/latency.py [--jobs 500]

Headway: `Client.run` of the SDK, and the same request by Python's own `http.client`, which shows
what of it is the SDK's. Peers: their own client in a process of its own, without HTTP.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import statistics
from collections.abc import Callable

import peers
from harness import ROUNDS, Latencies, Server, header, row, server, timed_ms, title, verdict

P50_MS, P99_MS = 6.0, 20.0
AIM_P50_MS, AIM_P99_MS = 3.0, 8.0
WARM_UP = 30


def by_sdk(measured: Server, operation: str, jobs: int) -> list[float]:
    with measured.client() as client:
        for number in range(WARM_UP):
            client.run(operation, {"n": number})
        return [
            timed_ms(lambda number=number: client.run(operation, {"n": number}))  # type: ignore[misc]
            for number in range(jobs)
        ]


def by_http(measured: Server, operation: str, jobs: int) -> list[float]:
    connection = http.client.HTTPConnection("127.0.0.1", measured.port)

    def once() -> None:
        connection.request(
            "POST", f"/v1/operations/{operation}?wait=30s", b'{"input":{"n":1}}',
            {"content-type": "application/json"},
        )  # fmt: skip
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, body

    for _ in range(WARM_UP):
        once()
    took = [timed_ms(once) for _ in range(jobs)]
    connection.close()
    return took


PHASES = {
    "submitted: the row's transaction begins": "created",
    "claimed: the worker's transaction begins": "claim",
    "the claim is stored and back in the worker's event loop": "claimed",
    "a process is there and was sent the job": "forked",
    "the function begins": "ran",
    "the function has returned": "returned",
    "the process is as new and the attempt is over": "ended",
    "the end's transaction begins": "stored",
}


def phases(measured: Server, jobs: int) -> None:
    """Where the time of the last jobs went, as their attempts recorded it."""
    marks: dict[str, list[float]] = {name: [] for name in PHASES.values()}
    with contextlib.closing(measured.database()) as connection:
        rows = connection.execute(
            "SELECT created_at_us, attempts.started_at_us, attempts.ended_at_us, usage_json"
            " FROM jobs JOIN attempts USING (sequence) ORDER BY sequence DESC LIMIT ?",
            (jobs,),
        ).fetchall()
    for created_us, claim_us, stored_us, usage in rows:
        line = json.loads(usage)["timeline"] | {
            "created": created_us / 1e6, "claim": claim_us / 1e6, "stored": stored_us / 1e6,
        }  # fmt: skip
        for name, found in marks.items():
            found.append((line[name] - created_us / 1e6) * 1000)
    print()
    header("Headway's phases", "ms after the submission's transaction began, median")
    for text, name in PHASES.items():
        row(text, f"{statistics.median(marks[name]):.2f}")


def measure(operation: str, jobs: int, names: list[str]) -> Latencies:
    """Measure all in turn, print the tables, give Headway's latencies."""
    with server() as measured, peers.running(names) as others:
        sources: dict[str, Callable[[], list[float]]] = {
            "Headway, SDK": lambda: by_sdk(measured, operation, jobs),
            "Headway, http.client": lambda: by_http(measured, operation, jobs),
        }
        for peer in others.values():
            sources[str(peer)] = lambda peer=peer: peer.ask("latency", jobs)  # type: ignore[misc]
        found = {name: Latencies() for name in sources}
        for _ in range(ROUNDS):
            for name, source in sources.items():
                found[name].add(source())
        table(found, jobs)
        phases(measured, jobs)
        return found["Headway, SDK"]


def table(found: dict[str, Latencies], jobs: int) -> None:
    own = found["Headway, SDK"]
    header("who", "p50, ms", "p99, ms", "p50 ÷ Headway's", "jobs")
    for name, latencies in found.items():
        ratio = latencies.p50.median / own.p50.median
        row(name, latencies.p50, latencies.p99, f"{ratio:.2f}", f"{ROUNDS} × {jobs}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--jobs", type=int, default=500)
    jobs = parser.parse_args().jobs
    title("P10: short lane, submit to result")
    own = measure("nothing", jobs, peers.wanted(["celery", "saq", "procrastinate"]))
    p50, p99 = own.p50.median, own.p99.median
    text = f"p50 {p50:.1f} ms, at most {P50_MS:g} (aim {AIM_P50_MS:g}); "
    text += f"p99 {p99:.1f} ms, at most {P99_MS:g} (aim {AIM_P99_MS:g})"
    verdict("P10", text, p50 <= P50_MS and p99 <= P99_MS)


if __name__ == "__main__":
    main()
