"""P1 and P2: how many requests, and how many chunks, one core of the client can take.

    python benchmarks/load/rates.py P1      # no stream, 64 in flight, against wrk
    python benchmarks/load/rates.py P2      # streams of 128 chunks, against wrk
    python benchmarks/load/rates.py         # both

All of Headway (the command, its one worker, every record written) runs on one core, the server on
the other. Two servers: one with prepared replies, to see the client's limit, and the simulator
that sends each token when it is due, a write for each, which is the limit itself: no client can
have more than its 64 streams give. wrk counts replies and keeps nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable, Iterator

import uvloop
from bare_client import run as run_bare
from harness import (
    CONNECTIONS,
    REPLY_TOKENS,
    Samples,
    Server,
    bench,
    client_core,
    command_line,
    flood,
    pinned,
    prepared,
    raw_request,
    request_body,
    simulated,
    title,
    verdict,
    wrk_rate,
)

CHUNKS = 128
P1_OF_WRK = 0.35
P2_OF_WRK = 0.8
P2_CHUNKS_PER_S = 250_000
SIM_ITL_S = 0.001


def compare(server: Server, chunks: int, rounds: int, seconds: float) -> Samples:
    """Rates of wrk, the bare client and Headway against one server, round after round."""
    samples = Samples()
    stream, tokens = chunks > 0, chunks or REPLY_TOKENS
    load = flood(server.url, seconds, "--stream" if stream else "--no-stream", tokens=tokens)
    for _ in range(rounds):
        with pinned(client_core()):
            body = request_body(stream, tokens)
            with busy(server, samples, "wrk"):
                samples.add("wrk", wrk_rate(server.port, body, seconds))
            with busy(server, samples, "bare uvloop + httptools"):
                bare = run_bare(server.port, raw_request(stream, tokens), CONNECTIONS, seconds)
                samples.add("bare uvloop + httptools", uvloop.run(bare))
        with busy(server, samples, "headway bench"):
            run = bench(*load, core=client_core())
        samples.add("headway bench", run.completed_per_s)
        samples.add("CPU of the worker", run.worker_cpu_us)
    return samples


@contextlib.contextmanager
def busy(server: Server, samples: Samples, client: str) -> Iterator[None]:
    """Keep how much of its core the server used while a client ran, its start included."""
    began_s, used_s = time.monotonic(), server.cpu_s
    yield
    share = (server.cpu_s - used_s) / (time.monotonic() - began_s)
    samples.add(f"{client}: server's core", share)


def show(samples: Samples, chunks: int) -> float:
    """Print the rates; return Headway's over wrk's."""
    print("| client | requests/s, median | spread | chunks/s | of wrk | server's core in use |")
    print("|---|---|---|---|---|---|")
    wrk = samples.median("wrk")
    for name in ("wrk", "bare uvloop + httptools", "headway bench"):
        rate = samples.median(name)
        of_chunks = f"{rate * chunks:,.0f}" if chunks else "–"
        used = samples.median(f"{name}: server's core")
        print(f"| {name} | {rate:,.0f} | {samples.spread(name, 0)} | {of_chunks} "
              f"| {rate / wrk:.2f} | {used:.0%} |")  # fmt: skip
    print(f"\nCPU of the worker: {samples.median('CPU of the worker'):.0f} µs a request.")
    return samples.median("headway bench") / wrk


def request_rate(rounds: int, seconds: float) -> None:
    with prepared(0) as server:
        title("P1: requests without a stream, one client core", command_line())
        ratio = show(compare(server, 0, rounds, seconds), 0)
    verdict("P1", f"{ratio:.2f} × wrk, at least {P1_OF_WRK}", ratio >= P1_OF_WRK)


def stream_rate(rounds: int, seconds: float) -> None:
    with prepared(CHUNKS) as server:
        title(f"P2: streams of {CHUNKS} chunks in one write, one client core", command_line())
        samples = compare(server, CHUNKS, rounds, seconds)
        show(samples, CHUNKS)
        chunks_per_s = samples.median("headway bench") * CHUNKS
    verdict(
        "P2",
        f"{chunks_per_s:,.0f} chunks/s, at least {P2_CHUNKS_PER_S:,}",
        chunks_per_s >= P2_CHUNKS_PER_S,
    )


def server_bound_rate(rounds: int, seconds: float) -> None:
    with simulated("--ttft", "0.005", "--itl", f"{SIM_ITL_S}") as server:
        asked = CONNECTIONS / (0.005 + (CHUNKS - 1) * SIM_ITL_S)
        pace = f"a token each {SIM_ITL_S * 1e3:g} ms, so {asked:,.0f} requests/s at most"
        title(f"P2: streams from the simulator, {pace}", command_line())
        ratio = show(compare(server, CHUNKS, rounds, seconds), CHUNKS)
    verdict("P2", f"{ratio:.2f} × wrk, at least {P2_OF_WRK}", ratio >= P2_OF_WRK)


BUDGETS: dict[str, tuple[Callable[[int, float], None], ...]] = {
    "P1": (request_rate,),
    "P2": (stream_rate, server_bound_rate),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("budget", nargs="*", help=f"of {', '.join(BUDGETS)}; default: all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    for budget in options.budget or BUDGETS:
        for measure in BUDGETS[budget]:
            measure(options.rounds, options.seconds)


if __name__ == "__main__":
    main()
