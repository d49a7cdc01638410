"""P17: from a line that a job prints to the follower who reads it over HTTP.

    python benchmarks/jobs/following.py [--lines 500]

The job prints the time; the follower, `Client.follow` of the SDK, subtracts it from its own: both
clocks are the host's monotonic one. Once with a gap of 10 ms between lines, once with 100 ms.
"""

from __future__ import annotations

import argparse
import time

from harness import ROUNDS, Latencies, header, row, server, title, verdict

from headway.client import Client, LogChunk

P50_MS, P99_MS = 10.0, 50.0
GAPS_S = (0.01, 0.1)


def followed_ms(client: Client, lines: int, gap_s: float) -> list[float]:
    job = client.submit("prints", {"lines": lines, "gap_s": gap_s})
    took, text = [], ""
    for said in client.follow(job.id):
        if isinstance(said, LogChunk):
            now_ns = time.monotonic_ns()
            *whole, text = (text + said.text).split("\n")
            took += [(now_ns - int(line)) / 1e6 for line in whole]
    assert len(took) == lines, (len(took), lines)
    # The first lines were printed before the follower had connected.
    return took[min(20, lines // 10) :]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--lines", type=int, default=500)
    lines = parser.parse_args().lines
    title("P17: a printed line to the follower's hand")
    found = {gap_s: Latencies() for gap_s in GAPS_S}
    with server() as measured, measured.client() as client:
        for _ in range(ROUNDS):
            for gap_s, latencies in found.items():
                count = min(lines, round(10 / gap_s))
                latencies.add(followed_ms(client, count, gap_s))
    header("gap between lines, ms", "p50, ms", "p99, ms", "lines")
    for gap_s, took in found.items():
        count = min(lines, round(10 / gap_s))
        row(f"{gap_s * 1000:.0f}", took.p50, took.p99, f"{ROUNDS} × {count}")
    p50 = max(took.p50.median for took in found.values())
    p99 = max(took.p99.median for took in found.values())
    text = f"p50 {p50:.1f} ms, at most {P50_MS:g}; p99 {p99:.1f} ms, at most {P99_MS:g}"
    verdict("P17", text, p50 <= P50_MS and p99 <= P99_MS)


if __name__ == "__main__":
    main()
