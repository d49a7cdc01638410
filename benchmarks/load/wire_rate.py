"""How fast is the wire alone? Rates of the transport and of the chat backend on it, on one core.

    .venv/bin/python benchmarks/load/wire_rate.py             # prepared replies, then the simulator
    .venv/bin/python benchmarks/load/wire_rate.py --profile   # cProfile of the backend's loop

Beside each run stand wrk (where it is installed) and a bare uvloop client, against the same server
in the same run. P1 and P2 count the whole client; this shows how much of them the wire leaves. CPU
time a request is the client process's own, so it holds on a busy machine too.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import pstats
import resource
import statistics
import time
from collections.abc import Awaitable, Callable, Coroutine

import uvloop
from bare_client import run as run_bare
from harness import CONNECTIONS, Server, client_core, pinned, prepared, simulated, wrk_rate

from headway.backends.backend import Call, Progress
from headway.backends.registry import create_openai
from headway.backends.spec import OpenAIBackendSpec, TargetSpec
from headway.wire.exchange import Exchange, Timeouts, WireRequest
from headway.wire.options import TransportOptions
from headway.wire.origin import parse_origin
from headway.wire.transport import open_transport

CALL = Call(prompt="How fast is the wire alone, without anything around it?", output_tokens=128)
HEADERS = {"Content-Type": "application/json"}


def request_body(stream: bool) -> bytes:
    body = {
        "model": "headway-sim",
        "messages": [{"role": "user", "content": CALL.prompt}],
        "max_tokens": CALL.output_tokens if stream else 8,
    }
    return json.dumps(body | ({"stream": True} if stream else {})).encode()


async def keep_in_flight(one: Callable[[], Awaitable[None]], seconds: float) -> float:
    """Requests per second with CONNECTIONS of them in flight."""
    count = 0
    began_s = time.monotonic()

    async def stream() -> None:
        nonlocal count
        while time.monotonic() - began_s < seconds:
            await one()
            count += 1

    await asyncio.gather(*[stream() for _ in range(CONNECTIONS)])
    return count / (time.monotonic() - began_s)


async def transport_rate(kind: str, port: int, stream: bool, seconds: float) -> float:
    origin = parse_origin(f"http://127.0.0.1:{port}")
    transport = open_transport(kind, TransportOptions(origin=origin))  # type: ignore[arg-type]
    await transport.startup()
    request = WireRequest("POST", "/v1/chat/completions", HEADERS, request_body(stream))
    limits = Timeouts()

    async def one() -> None:
        exchange = Exchange()
        await transport.exchange(request, exchange, limits)
        assert exchange.failure is None, exchange.failure

    rate = await keep_in_flight(one, seconds)
    await transport.shutdown()
    return rate


async def backend_rate(port: int, stream: bool, seconds: float) -> float:
    target = TargetSpec(url=f"http://127.0.0.1:{port}", model="headway-sim")
    backend = create_openai(OpenAIBackendSpec(stream=stream), target)
    await backend.startup()

    async def one() -> None:
        progress = Progress()
        answer = await backend.resolve(CALL, (), progress)
        assert answer.failure is None, answer.failure

    rate = await keep_in_flight(one, seconds)
    await backend.shutdown()
    return rate


def cpu_s() -> float:
    """CPU time of this process and of the children that have ended (wrk, not the server)."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def clients(
    port: int, stream: bool, seconds: float
) -> list[tuple[str, Callable[[], float | None]]]:
    body = request_body(stream)
    raw = (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    )

    def loop(work: Callable[[], Coroutine[object, object, float]]) -> Callable[[], float]:
        return lambda: uvloop.run(work())

    return [
        ("wrk", lambda: wrk_rate(port, body, seconds)),
        ("bare uvloop", loop(lambda: run_bare(port, raw, CONNECTIONS, seconds))),
        ("transport fast", loop(lambda: transport_rate("fast", port, stream, seconds))),
        ("transport aiohttp", loop(lambda: transport_rate("aiohttp", port, stream, seconds))),
        ("chat backend", loop(lambda: backend_rate(port, stream, seconds))),
    ]


def measure(title: str, server: Server, chunks: int, options: argparse.Namespace) -> None:
    rates: dict[str, list[float]] = {}
    costs_us: dict[str, list[float]] = {}
    with server as target, pinned(client_core()):
        # The first round only imports and warms up.
        for seconds in [0.3] + [options.seconds] * options.rounds:
            for name, run in clients(target.port, chunks > 0, seconds):
                before_s = cpu_s()
                rate = run()
                if rate is not None and seconds == options.seconds:
                    spent_us = (cpu_s() - before_s) * 1e6
                    rates.setdefault(name, []).append(rate)
                    costs_us.setdefault(name, []).append(spent_us / (rate * seconds))
    print(f"\n### {title}: {CONNECTIONS} in flight, {options.rounds} x {options.seconds:g} s\n")
    print_table(rates, costs_us, chunks)


def print_table(
    rates: dict[str, list[float]], costs_us: dict[str, list[float]], chunks: int
) -> None:
    print("| client | requests/s, median | spread | chunks/s | of wrk | CPU µs a request |")
    print("|---|---|---|---|---|---|")
    wrk = statistics.median(rates["wrk"]) if "wrk" in rates else None
    for name, values in rates.items():
        median = statistics.median(values)
        of_wrk = f"{median / wrk:.2f}" if wrk else "-"
        per_chunk = f"{median * chunks:,.0f}" if chunks else "-"
        spread = f"{min(values):,.0f}..{max(values):,.0f}"
        cost_us = statistics.median(costs_us[name])
        print(f"| {name} | {median:,.0f} | {spread} | {per_chunk} | {of_wrk} | {cost_us:.1f} |")


def profile(chunks: int, seconds: float) -> None:
    with prepared(chunks) as server:
        profiler = cProfile.Profile()
        profiler.enable()
        uvloop.run(backend_rate(server.port, chunks > 0, seconds))
        profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(22)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--chunks", type=int, default=128)
    parser.add_argument("--no-sim", action="store_true", help="prepared replies only")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    if options.profile:
        profile(0, options.seconds)
        profile(options.chunks, options.seconds)
        return
    chunks = options.chunks
    measure("Prepared reply, no stream", prepared(0), 0, options)
    measure("Prepared stream in one write", prepared(chunks), chunks, options)
    if not options.no_sim:
        at_once = ("--ttft", "0", "--itl", "0")
        measure("headway sim, no stream", simulated(*at_once), 0, options)
        measure("headway sim, stream", simulated(*at_once), chunks, options)


if __name__ == "__main__":
    main()
