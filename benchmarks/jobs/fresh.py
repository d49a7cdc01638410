"""P12: a fresh process for each job: jobs a second, and from submitting to the result.

    python benchmarks/jobs/fresh.py [--jobs 400]

Headway: the long lane with its default size. RQ: two workers, each of which forks a process for
each job.
"""

from __future__ import annotations

import argparse

import peers
from harness import ROUNDS, Latencies, Rounds, header, row, server, title, verdict
from latency import by_sdk
from rates import in_batches

P50_MS = 15.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--jobs", type=int, default=400)
    jobs = parser.parse_args().jobs
    title("P12: a fresh process for each job")
    with server() as measured, peers.running(["rq"]) as others:
        rates = {name: Rounds(0) for name in ("Headway", *map(str, others.values()))}
        latencies = {name: Latencies() for name in rates}
        for _ in range(ROUNDS):
            rates["Headway"].add(in_batches(measured, jobs, "fresh"))
            latencies["Headway"].add(by_sdk(measured, "fresh", jobs // 2))
            for peer in others.values():
                rates[str(peer)].add(peer.ask("rate", jobs))
                latencies[str(peer)].add(peer.ask("latency", jobs // 2))
    own = rates["Headway"].median
    header("who", "jobs a second", "Headway ÷ it", "p50, ms", "p99, ms", "jobs")
    for name, rate in rates.items():
        took = latencies[name]
        count = f"{ROUNDS} × {jobs} and {jobs // 2}"
        row(name, rate, f"{own / rate.median:.2f}", took.p50, took.p99, count)
    p50 = latencies["Headway"].p50.median
    verdict("P12", f"p50 {p50:.1f} ms, at most {P50_MS:g}", p50 <= P50_MS)
    for peer in others.values():
        ratio = own / rates[str(peer)].median
        text = f"{own:.0f}/s = {ratio:.2f} × RQ, at least 1.0 (aim 400/s)"
        verdict("P12", text, ratio >= 1)


if __name__ == "__main__":
    main()
