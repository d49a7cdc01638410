"""CPU that one worker takes for a request, from its prompt to its encoded record.

A stage of a worker in this process, with real inputs, a real backend, a real transport, and an
outbox that drops; the server with prepared replies runs beside it. CPU time of this process only,
so a busy machine changes it little; the best of many short rounds changes least of all.

    python benchmarks/load/worker_cost.py [--chunks 0] [--requests 5000] [--rounds 20] [--profile]

A bare uvloop and httptools client that keeps nothing runs between the rounds, for the ratio.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import pstats
import statistics
import time

import uvloop
from bare_client import run as run_bare
from harness import (
    CONNECTIONS,
    PROMPT_TOKENS,
    REPLY_TOKENS,
    client_core,
    pinned,
    prepared,
    raw_request,
)

from headway.backends.registry import create_backend
from headway.backends.spec import NullBackendSpec, OpenAIBackendSpec, TargetSpec
from headway.core.clock import SystemClock, monotonic_ns
from headway.core.distributions import Constant
from headway.load.inputs import open_inputs
from headway.load.inputs.recipe import Recipe
from headway.load.inputs.vocabulary import uncounted_vocabulary
from headway.load.lifecycle import StageFrame
from headway.load.messages import BeginStage, Drain, Grants, StageDone
from headway.load.spec import SyntheticInputSpec
from headway.load.stage_worker import StageServices, StageWorker


class Outbox:
    """Drops what is sent; says when the stage is done."""

    over_high_water = False

    def __init__(self) -> None:
        self.done = asyncio.Event()

    def send(self, message: object) -> None:
        if isinstance(message, StageDone):
            self.done.set()

    async def wait_drained(self) -> None: ...


async def stage(port: int, chunks: int, requests: int, rounds: int, kind: str) -> list[float]:
    """Microseconds of CPU a request, of each round."""
    spec: OpenAIBackendSpec | NullBackendSpec = OpenAIBackendSpec(stream=chunks > 0)
    if kind == "null":
        spec = NullBackendSpec()
    backend = create_backend(spec, TargetSpec(url=f"http://127.0.0.1:{port}"))
    await backend.startup()
    await backend.validate()
    given = SyntheticInputSpec(
        prompt_tokens=Constant(value=PROMPT_TOKENS),
        output_tokens=Constant(value=chunks or REPLY_TOKENS),
    )
    recipe = Recipe(
        spec=given.model_dump(mode="json"), vocabulary=uncounted_vocabulary(), workload_hash=""
    )
    inputs = open_inputs(recipe, 1, 0)
    costs = []
    # As the worker does when its backend is up.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    for number in range(rounds):
        outbox = Outbox()
        start_ns = monotonic_ns()
        begin = BeginStage(stage=number, start_ns=start_ns, slots=CONNECTIONS, closed_loop=True)
        services = StageServices(backend, outbox, SystemClock(), print)
        frame = StageFrame(number, 0, start_ns, False)
        one = StageWorker(begin, inputs, frame, services, False)
        began = time.process_time()
        one.take_grants(Grants(number, 0, requests))
        one.drain(Drain(number))
        await outbox.done.wait()
        costs.append((time.process_time() - began) / requests * 1e6)
        await one.close()
    await backend.shutdown()
    return costs


def bare_cost(port: int, chunks: int) -> float:
    began, seconds = time.process_time(), 0.3
    request = raw_request(chunks > 0, chunks or REPLY_TOKENS)
    rate = uvloop.run(run_bare(port, request, CONNECTIONS, seconds))
    return (time.process_time() - began) / (rate * seconds) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--chunks", type=int, default=0, help="0: no stream")
    parser.add_argument("--requests", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--backend", choices=("chat", "null"), default="chat")
    parser.add_argument("--profile", action="store_true")
    asked = parser.parse_args()
    with prepared(asked.chunks) as server, pinned(client_core()):
        run = (server.port, asked.chunks, asked.requests)
        uvloop.run(stage(*run, 2, asked.backend))
        if asked.profile:
            profile = cProfile.Profile()
            profile.runcall(uvloop.run, stage(*run, 2, asked.backend))
            pstats.Stats(profile).sort_stats("tottime").print_stats(45)
            return
        bare = [bare_cost(server.port, asked.chunks) for _ in range(3)]
        costs = uvloop.run(stage(*run, asked.rounds, asked.backend))
        bare += [bare_cost(server.port, asked.chunks) for _ in range(3)]
    print(
        f"worker: best {min(costs):.1f}, median {statistics.median(costs):.1f} us a request; "
        f"bare client: best {min(bare):.1f}, median {statistics.median(bare):.1f}"
    )


if __name__ == "__main__":
    main()
