"""P7: the peak memory of the whole client: 64 streams, and a run of 1,000,000 requests.

    python benchmarks/load/memory.py [--requests 1000000]

All processes of the command are added up, as proportional set sizes (shared pages count once) and
as resident sizes, from the first moment to the last, so that the report is included.
"""

from __future__ import annotations

import argparse

from harness import BenchRun, bench, command_line, flood, simulated, title, verdict

MIB = 1 << 20
SMALL_MIB, LARGE_MIB = 200, 400


def row(name: str, run: BenchRun) -> float:
    pss_mib, rss_mib = run.peak.pss_bytes / MIB, run.peak.rss_bytes / MIB
    took_s = (run.ended_ns - run.began_ns) / 1e9
    print(f"| {name} | {len(run.records):,} | {pss_mib:.0f} | {rss_mib:.0f} | {took_s:.0f} "
          f"| {run.cpu_s:.0f} |", flush=True)  # fmt: skip
    return pss_mib


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--requests", type=int, default=1_000_000)
    requests = parser.parse_args().requests
    title("P7: peak memory of the whole client", command_line())
    print("| run | requests | PSS, MiB | RSS, MiB | took, s | CPU, s |")
    print("|---|---|---|---|---|---|")
    with simulated("--ttft", "0.02", "--itl", "0.005") as server:
        load = flood(server.url, 10, "--output", "20")
        small = [row("64 streams, default settings", bench(*load, watch_memory=True))]
        small.append(row("64 streams, calibrated", bench(*load, "--calibrate", watch_memory=True)))
    null = ["--backend", "null", "--streams", "64", "--max-requests", str(requests)]
    run = bench(*null, "--no-calibrate", "--quiet", watch_memory=True)
    large_mib = row("null backend", run)
    small_mib = max(small)
    verdict("P7", f"{small_mib:.0f} MiB, at most {SMALL_MIB}", small_mib <= SMALL_MIB)
    text = f"{large_mib:.0f} MiB with {requests:,} requests, at most {LARGE_MIB}"
    verdict("P7", text, large_mib <= LARGE_MIB)


if __name__ == "__main__":
    main()
