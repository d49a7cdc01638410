"""Nothing of one job's context is left for the next, in any lane (J10, trap 12).

Random jobs run one after another through one warm process, fresh processes, the event loop and
threads. Each leaves a mess and tells what it found: exactly its own, whatever ran before.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.clock import SystemClock
from headway.core.statedir import StateDir
from headway.core.states import Lane
from headway.dispatch.inline_attempt import InlineSupervisor
from headway.dispatch.inline_output import OutputSwitch
from headway.execution.attempt import AttemptPlan, AttemptResult, Limits, Progress
from headway.execution.attempt import IgnoreEvents as Ignore
from headway.execution.settings import SupervisorSettings
from headway.execution.supervisor import Supervisor
from headway.jobs.registry import load_operations
from headway.jobs.secrets import SecretValues

OPERATIONS = str(Path(__file__).with_name("context_ops.py"))
REGISTRY = load_operations(OPERATIONS)
NUMBERS = itertools.count(1)
VALUES = st.text("abcXYZ 0123456789-", max_size=8)


@dataclass(frozen=True)
class Job:
    operation: str
    text: str
    env: dict[str, str]
    config: dict[str, Any]
    secret: str | None


jobs = st.builds(
    Job,
    operation=st.sampled_from(["warm", "warm", "warm", "fresh", "on_loop", "in_thread"]),
    text=st.sampled_from(["quiet", "fail loudly"]) | VALUES.map("x".__add__),
    env=st.dictionaries(st.sampled_from(["APP_A", "APP_B", "APP_LEFT", "APP_PUT"]), VALUES),
    config=st.fixed_dictionaries({}, optional={"number": st.integers(0, 9), "text": VALUES}),
    secret=st.none() | st.integers(10**11, 10**12).map("sk-{}".format),
)


class Told(Ignore):
    def __init__(self) -> None:
        self.progress: list[Progress] = []

    def on_progress(self, progress: Progress) -> None:
        self.progress.append(progress)


class Lanes:
    """All lanes of a server, in this process's event loop."""

    def __init__(self, state: Path) -> None:
        self.state_dir = StateDir(state)
        self.runner = asyncio.Runner()
        self.output = OutputSwitch()
        settings = SupervisorSettings(modules=(OPERATIONS,), warm_processes=1)
        self.processes = Supervisor(settings, self.state_dir, SystemClock())
        self.inline = InlineSupervisor(REGISTRY, self.state_dir, SystemClock())

    def open(self) -> None:
        self.runner.run(self.processes.open())

    def close(self) -> None:
        self.runner.run(self.processes.close())
        self.runner.close()

    def run(self, job: Job) -> tuple[AttemptPlan, AttemptResult, Told]:
        return self.runner.run(self._run(job))

    async def _run(self, job: Job) -> tuple[AttemptPlan, AttemptResult, Told]:
        operation = REGISTRY.get(job.operation)
        assert operation is not None
        env = {} if job.secret is None else {"APP_SECRET": job.secret}
        named = {} if job.secret is None else {"key": job.secret}
        plan = AttemptPlan(
            job_id=f"job{next(NUMBERS)}",
            attempt=1,
            operation=job.operation,
            lane=operation.lane,
            request=json.dumps({"text": job.text}).encode(),
            env=job.env,
            config=job.config,
            secrets=SecretValues(env, named),
            limits=Limits(grace_s=5),
        )
        told = Told()
        lane = self.inline if operation.lane is Lane.INLINE else self.processes
        # Only here: pytest changes `sys.stdout` for each test.
        self.output.open()
        try:
            running = await lane.start(plan, told)
            async with asyncio.timeout(60):
                return plan, await running.wait(), told
        finally:
            self.output.close()

    def written(self, plan: AttemptPlan) -> str:
        """All that is kept of an attempt."""
        files = [path for path in self.state_dir.job_logs(plan.job_id).rglob("*") if path.is_file()]
        return "".join(path.read_text() for path in files)


@pytest.fixture(scope="module")
def lanes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lanes]:
    made = Lanes(tmp_path_factory.mktemp("lanes"))
    made.open()
    yield made
    made.close()


def check(job: Job, plan: AttemptPlan, result: AttemptResult, umask: int) -> None:
    if job.text.startswith("fail"):
        assert result.outcome == "failed"
        return
    assert result.outcome == "succeeded", result
    found = json.loads(result.ending.result or b"null")  # type: ignore[union-attr]
    secret = {} if job.secret is None else {"APP_SECRET": "***"}
    assert found["env"] == {**job.env, **secret}
    assert found["config"] == {"number": 0, "text": "", **job.config}
    assert found["secret"] == (None if job.secret is None else job.secret[::-1])
    assert found["job"] == plan.job_id
    assert (found["temp"], found["mark"], found["umask"]) == ([], None, umask)
    # Of a process lane: also what the kernel shows of the process, which was forked without it.
    assert found.get("cwd", True)
    assert found.get("tempfile", True)
    assert found.get("raw", []) == []
    assert found.get("remembered", []) == []


@settings(max_examples=25)
@given(st.lists(jobs, min_size=2, max_size=5))
def test_each_job_finds_its_own_context_and_nothing_of_the_one_before(
    lanes: Lanes, given_jobs: list[Job]
) -> None:
    umask = os.umask(0o022)
    os.umask(umask)
    before = dict(os.environ), Path.cwd()
    for job in given_jobs:
        plan, result, told = lanes.run(job)
        check(job, plan, result, umask)
        if job.secret is not None:
            kept = f"{lanes.written(plan)}{result}{told.progress}"
            assert job.secret not in kept
            assert "APP_SECRET=***" in kept
    assert (dict(os.environ), Path.cwd()) == before
