"""Attempts, cancels and deaths at random moments: each ends once, by rule, and leaves nothing."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from collections import Counter
from pathlib import Path

import pytest

from headway.core.clock import SystemClock
from headway.core.statedir import StateDir
from headway.core.states import Lane, Outcome
from headway.execution.attempt import AttemptPlan, AttemptResult, KillMeans, Limits
from headway.execution.linux import descendants, read_processes
from headway.execution.settings import SupervisorSettings
from headway.execution.supervisor import Supervisor

OPERATIONS = str(Path(__file__).parents[1] / "unit" / "execution" / "operations.py")
ATTEMPTS = 60
LEGAL = {
    "nothing": {Outcome.SUCCEEDED},
    "cancel": {Outcome.SUCCEEDED, Outcome.CANCELLED},
    "kill": {Outcome.SUCCEEDED, Outcome.WORKER_LOST},
    "timeout": {Outcome.SUCCEEDED, Outcome.TIMED_OUT},
}


async def one(
    supervisor: Supervisor, rng: random.Random, number: int, directory: Path
) -> tuple[str, AttemptResult]:
    operation, request, lane = rng.choice(
        [
            ("echo", {"value": number}, Lane.SHORT),
            ("sleep", {"seconds": 0.05}, Lane.SHORT),
            ("sleep", {"seconds": 0.05}, Lane.LONG),
            ("flood", {"megabytes": 2}, Lane.LONG),
            ("leaves_daemons", {"pids": str(directory / f"{number}")}, Lane.LONG),
        ]
    )
    what = rng.choice(sorted(LEGAL))
    limits = Limits(timeout_s=rng.uniform(0.001, 0.1) if what == "timeout" else None, grace_s=0.2)
    plan = AttemptPlan(
        f"job{number}", 1, operation, lane, json.dumps(request).encode(), limits=limits
    )
    running = await supervisor.start(plan)
    await asyncio.sleep(rng.uniform(0, 0.08))
    if what == "cancel":
        await running.cancel(rng.choice([0, 0.2]))
    elif what == "kill" and running.pid is not None and running._process is not None:
        running._process.send_signal(signal.SIGKILL)
    async with asyncio.timeout(30):
        return what, await running.wait()


@pytest.mark.parametrize("means", [None, KillMeans.SUBREAPER])
async def test_whatever_happens_each_attempt_ends_by_rule(tmp_path, means) -> None:
    """J6, J8, trap 3: none hangs, none has an outcome that its fate does not allow."""
    seed = 20261130
    rng = random.Random(seed)
    settings = SupervisorSettings(modules=(OPERATIONS,), kill_means=means, warm_processes=3)
    state_dir = StateDir(tmp_path / "state")
    (tmp_path / "pids").mkdir()
    async with Supervisor(settings, state_dir, SystemClock()) as supervisor:
        slots = asyncio.Semaphore(5)

        async def slotted(number: int) -> None:
            async with slots:
                what, result = await one(supervisor, rng, number, tmp_path / "pids")
            seen[what, result.outcome] += 1
            assert result.outcome in LEGAL[what], (seed, what, result)
            assert result.kill is None or result.kill.survivors == ()

        seen: Counter[tuple[str, Outcome]] = Counter()
        forkserver = supervisor.forkserver_pid
        await asyncio.gather(*(slotted(number) for number in range(ATTEMPTS)))
        assert supervisor.statistics()["running"] == 0

        def orphans() -> set[int]:
            left = {facts.pid for facts in descendants(forkserver, read_processes())}
            return left - {process.pid for process in supervisor._factory.processes}

        async with asyncio.timeout(10):
            # A spare that was forked this moment is not known to the supervisor yet.
            while orphans():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert [path for path in state_dir.tmp.rglob("*") if path.is_file()] == []
        assert sum(seen.values()) == ATTEMPTS
        assert len({outcome for _, outcome in seen}) >= 3, "the soak does what it says"
    with pytest.raises(ProcessLookupError):
        os.kill(forkserver, 0)
