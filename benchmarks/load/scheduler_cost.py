"""CPU that the scheduler itself takes for a request: slots, queue, record, encoding, counting.

One worker's stage in this process, content and backend that cost nothing, an outbox that drops.
CPU time, not wall time, so that a busy machine changes it little.

    python benchmarks/load/scheduler_cost.py [requests] [--profile]
"""

from __future__ import annotations

import asyncio
import cProfile
import pstats
import sys
import time

from headway.backends.backend import Answer, Call, Message, TargetInfo
from headway.core.clock import SystemClock, monotonic_ns
from headway.load.inputs import Conversation, Turn
from headway.load.lifecycle import StageFrame
from headway.load.messages import BeginStage, Drain, Grants, StageDone
from headway.load.stage_worker import StageServices, StageWorker

SLOTS = 64


class FreeBackend:
    """Answers on the next turn of the loop, with every time filled in."""

    answer = Answer(message=Message("assistant", ""))

    async def startup(self) -> None: ...

    async def validate(self) -> TargetInfo:
        return TargetInfo()

    async def shutdown(self) -> None: ...

    async def resolve(self, call, history, progress) -> Answer:
        progress.sent_ns = now = monotonic_ns()
        await asyncio.sleep(0)
        progress.first_byte_ns = progress.first_token_ns = progress.first_content_ns = now
        progress.last_token_ns = progress.done_ns = monotonic_ns()
        progress.output_tokens, progress.output_tokens_source = 1, "usage"
        progress.chunks, progress.finish_reason = 1, "stop"
        progress.input_tokens, progress.response_bytes = 16, 500
        progress.connection_reused = True
        return self.answer


class SameInputs:
    """One conversation for every index."""

    _one = Conversation(turns=(Turn(call=Call(prompt="x", output_tokens=1)),))

    def conversation(self, index: int) -> Conversation:
        return self._one

    def close(self) -> None: ...


class Outbox:
    """Drops what is sent; says when the stage is done."""

    over_high_water = False

    def __init__(self) -> None:
        self.done = asyncio.Event()

    def send(self, message) -> None:
        if isinstance(message, StageDone):
            self.done.set()

    async def wait_drained(self) -> None: ...


async def run(requests: int) -> float:
    outbox = Outbox()
    start_ns = monotonic_ns()
    begin = BeginStage(stage=0, start_ns=start_ns, slots=SLOTS, closed_loop=True)
    services = StageServices(FreeBackend(), outbox, SystemClock(), print)
    frame = StageFrame(0, 0, start_ns, False)
    stage = StageWorker(begin, SameInputs(), frame, services, False)
    began = time.process_time()
    stage.take_grants(Grants(0, 0, requests))
    stage.drain(Drain(0))
    await outbox.done.wait()
    used = time.process_time() - began
    await stage.close()
    return used / requests * 1e6


def main() -> None:
    import uvloop

    requests = int(next((a for a in sys.argv[1:] if a.isdigit()), 200_000))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run(5_000))
        if "--profile" in sys.argv:
            profile = cProfile.Profile()
            profile.runcall(runner.run, run(requests))
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)
            return
        costs = sorted(runner.run(run(requests)) for _ in range(5))
    print(f"{costs[2]:.2f} us a request (median of 5; {costs[0]:.2f} to {costs[-1]:.2f})")


if __name__ == "__main__":
    main()
