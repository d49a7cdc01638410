"""P3, P4 and P5: an open loop of 1,000 streams a second: how late, how exact, at what cost.

    python benchmarks/load/pacing.py [--rate 1000] [--seconds 5] [--rounds 3]

The simulated server answers after 20 ms with 20 chunks, 5 ms apart, and keeps the truth about
every request, pinned to one core. `headway bench` and a bare loop (timerfd, uvloop, httptools)
send the same load one after another, on whichever core the kernel gives them.

P4 compares the client's time to the first token with the server's own (from the last byte of the
request read, to the first token handed to the socket). The two lists are matched by the order of
sending and of arrival; where two requests overtook each other on the way, the error is the little
by which they did.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

import uvloop
from bare_paced import PacedLoad
from harness import (
    Samples,
    bench,
    command_line,
    raw_request,
    simulated,
    title,
    verdict,
)

CHUNKS = 20
LATE_P50_MS, TTFT_P50_MS, OF_BARE, CPU_S = 0.3, 0.3, 1.5, 0.5
SETTLED = 0.2
"""The share of requests at the start that opens connections and is left out."""


class Truth:
    """The simulator's truth log, read in pieces as runs end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def new_times_ns(self, wait_for: int) -> list[tuple[int, int]]:
        """(arrival, first token) of the last `wait_for` requests since the last call.

        The server writes the log with a delay.
        """
        found: list[tuple[int, int]] = []
        deadline_s = time.monotonic() + 10
        while len(found) < wait_for and time.monotonic() < deadline_s:
            time.sleep(0.1)
            found += self._new()
        return sorted(found)[-wait_for:]

    def _new(self) -> list[tuple[int, int]]:
        with self._path.open("rb") as file:
            file.seek(self._read)
            whole, end, _ = file.read().rpartition(b"\n")
        self._read += len(whole) + len(end)
        asked = [json.loads(line) for line in whole.splitlines()]
        # Not the probes that count prompt tokens: those ask for one token.
        return [
            (t["arrival_ns"], t["first_token_ns"])
            for t in asked
            if t["first_token_ns"] is not None and t["output_tokens"] == CHUNKS
        ]


def percentile_ms(values_ns: list[int], q: float) -> float:
    ordered = sorted(values_ns)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))] / 1e6


def keep(
    samples: Samples, who: str, late_ns: list[int], times_ns: list[tuple[int, int]],
    true_ns: list[tuple[int, int]],
) -> None:  # fmt: skip
    """Lateness, and the client's TTFT minus the server's own, without the first requests."""
    if len(times_ns) != len(true_ns):
        raise SystemExit(f"{who} ended {len(times_ns)} requests, the server {len(true_ns)}")
    pairs = zip(sorted(times_ns), true_ns, strict=True)
    excess = [(first - sent) - (token - arrival) for (sent, first), (arrival, token) in pairs]
    skipped = int(len(excess) * SETTLED)
    for q in (0.5, 0.99):
        samples.add(f"{who} late {q}", percentile_ms(late_ns[skipped:], q))
        samples.add(f"{who} excess {q}", percentile_ms(excess[skipped:], q))


def measure_bare(port: int, rate: float, count: int, samples: Samples, truth: Truth) -> None:
    body = raw_request(True, CHUNKS)
    before = resource.getrusage(resource.RUSAGE_SELF)

    async def run() -> PacedLoad:
        load = PacedLoad(body, rate, count)
        await load.run(port, connections=int(rate))
        return load

    load = uvloop.run(run())
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    samples.add("bare cpu", cpu_s / count * 1_000)
    keep(samples, "bare", load.late_ns, load.times_ns, truth.new_times_ns(count))


def measure_headway(url: str, rate: float, count: int, samples: Samples, truth: Truth) -> None:
    load = [url, "--profile", "constant", "--rate", f"{rate:g}", "--input", "16",
            "--output", str(CHUNKS), "--workers", "1", "--no-calibrate", "--quiet"]  # fmt: skip
    base_cpu_s = bench(*load, "--max-requests", "1").cpu_s
    truth.new_times_ns(1)
    run = bench(*load, "--max-requests", str(count))
    samples.add("headway cpu", (run.cpu_s - base_cpu_s) / (count - 1) * 1_000)
    records = [r for r in run.records if r.first_token_ns is not None and r.sent_ns is not None]
    records.sort(key=lambda r: r.due_ns)
    samples.add("headway whole cpu", base_cpu_s + samples.last("headway cpu"))
    late_ns = [r.sent_ns - r.due_ns for r in records]
    times_ns = [(r.sent_ns, r.first_token_ns) for r in records]
    keep(samples, "headway", late_ns, times_ns, truth.new_times_ns(count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rate", type=float, default=1_000)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    count = int(asked.rate * asked.seconds)
    samples = Samples()
    title(f"P3 to P5: {asked.rate:g} streams/s, {CHUNKS} chunks each", command_line())
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "truth.jsonl"
        options = ["--ttft", "0.02", "--itl", "0.005", "--truth-log", str(log)]
        with simulated(*options) as server:
            truth = Truth(log)
            for _ in range(asked.rounds):
                for who, measure in (
                    ("bare", lambda: measure_bare(server.port, asked.rate, count, samples, truth)),
                    ("headway", lambda: measure_headway(
                        server.url, asked.rate, count, samples, truth
                    )),
                ):  # fmt: skip
                    used_s = server.cpu_s
                    measure()
                    samples.add(f"{who} server cpu", (server.cpu_s - used_s) / count * 1_000)
    show(samples)


def show(samples: Samples) -> None:
    print("| sender | late p50, ms | late p99 | spread | TTFT − server's p50 | p99 | spread "
          "| CPU s per 1,000 | the server's |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|")
    for who in ("bare", "headway"):
        late, excess = f"{who} late", f"{who} excess"
        cells = [
            f"{samples.median(f'{late} 0.5'):.3f}",
            f"{samples.median(f'{late} 0.99'):.3f}",
            samples.spread(f"{late} 0.99", 2),
            f"{samples.median(f'{excess} 0.5'):.3f}",
            f"{samples.median(f'{excess} 0.99'):.3f}",
            samples.spread(f"{excess} 0.99", 2),
            f"{samples.median(f'{who} cpu'):.2f}",
            f"{samples.median(f'{who} server cpu'):.2f}",
        ]
        print(f"| {who} | {' | '.join(cells)} |")
    print("\nCPU of a whole `headway bench` of 1,000 such requests, start and report included: "
          f"{samples.median('headway whole cpu'):.2f} s")  # fmt: skip
    for budget, what, limit_ms in (("P3", "late", LATE_P50_MS), ("P4", "excess", TTFT_P50_MS)):
        p50 = samples.median(f"headway {what} 0.5")
        p99, bare_p99 = samples.median(f"headway {what} 0.99"), samples.median(f"bare {what} 0.99")
        text = f"p50 {p50:.2f} ms, at most {limit_ms}; p99 {p99 / bare_p99:.2f} × bare's"
        met = p50 <= limit_ms and p99 <= OF_BARE * bare_p99
        verdict(budget, f"{text}, at most {OF_BARE}", met)
    cpu_s = samples.median("headway cpu")
    verdict("P5", f"{cpu_s:.2f} s of CPU per 1,000 requests, at most {CPU_S}", cpu_s <= CPU_S)


if __name__ == "__main__":
    main()
