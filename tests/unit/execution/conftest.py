"""Real supervisors for the tests of execution."""

# ruff: noqa: ASYNC110 - short waits and file reads of a test harm nobody
from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from headway.core.clock import SystemClock
from headway.core.statedir import StateDir
from headway.core.states import Lane
from headway.execution.attempt import AttemptPlan, AttemptResult, Limits, Progress
from headway.execution.running import RunningAttempt
from headway.execution.settings import SupervisorSettings
from headway.execution.supervisor import Supervisor
from headway.jobs import Artifact, load_operations

OPERATIONS = str(Path(__file__).with_name("operations.py"))
_REGISTRY = load_operations(OPERATIONS)
_NUMBERS = itertools.count(1)


@dataclass
class Recorder:
    """An observer that keeps what it is told."""

    started: asyncio.Event = field(default_factory=asyncio.Event)
    printed: asyncio.Event = field(default_factory=asyncio.Event)
    progress: list[Progress] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    growth: list[int] = field(default_factory=list)
    writable: bool = True

    def may_write(self) -> bool:
        return self.writable

    def on_started(self, pid: int) -> None:
        self.started.set()

    def on_progress(self, progress: Progress) -> None:
        self.progress.append(progress)

    def on_artifact(self, artifact: Artifact) -> None:
        self.artifacts.append(artifact)

    def on_log_growth(self, size_bytes: int) -> None:
        self.growth.append(size_bytes)
        self.printed.set()


class Bench:
    """A supervisor and short ways to use it."""

    def __init__(self, supervisor: Supervisor, state_dir: StateDir) -> None:
        self.supervisor = supervisor
        self.state_dir = state_dir

    def plan(
        self,
        operation: str,
        request: dict[str, Any] | None = None,
        limits: Limits | None = None,
        **fields: Any,
    ) -> AttemptPlan:
        known = _REGISTRY.get(operation)
        return AttemptPlan(
            job_id=fields.pop("job_id", f"job{next(_NUMBERS)}"),
            attempt=fields.pop("attempt", 1),
            operation=operation,
            lane=Lane(fields.pop("lane", known.lane if known else Lane.LONG)),
            request=json.dumps(request or {}).encode(),
            limits=limits or Limits(grace_s=5),
            **fields,
        )

    async def start(
        self, operation: str, request: dict[str, Any] | None = None, **fields: Any
    ) -> tuple[RunningAttempt, Recorder]:
        recorder = fields.pop("observer", None) or Recorder()
        running = await self.supervisor.start(self.plan(operation, request, **fields), recorder)
        return running, recorder

    async def run(
        self, operation: str, request: dict[str, Any] | None = None, **fields: Any
    ) -> AttemptResult:
        running, _ = await self.start(operation, request, **fields)
        async with asyncio.timeout(60):
            return await running.wait()

    async def value(
        self, operation: str, request: dict[str, Any] | None = None, **fields: Any
    ) -> Any:
        """The result of an operation that must succeed."""
        result = await self.run(operation, request, **fields)
        assert result.outcome == "succeeded", result
        return json.loads(result.ending.result or b"null")

    def log(self, running: RunningAttempt) -> str:
        path = self.state_dir.attempt_log(running.plan.job_id, running.plan.attempt)
        return path.read_text() if path.exists() else ""


async def eventually(condition: Callable[[], Any], limit_s: float = 20) -> None:
    """Wait until `condition` holds."""
    async with asyncio.timeout(limit_s):
        while not condition():
            await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


def read_pids(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()]


@pytest.fixture
def tools() -> Any:
    """The helper functions, for tests that cannot import a conftest."""

    class Tools:
        eventually = staticmethod(eventually)
        alive = staticmethod(alive)
        read_pids = staticmethod(read_pids)
        Recorder = Recorder
        Bench = Bench

    return Tools


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    """One supervisor for a module's tests, with the means that the host offers."""
    state_dir = StateDir(tmp_path_factory.mktemp("state"))
    os.environ["HEADWAY_SECRET_TOKEN"] = "do-not-leak"
    os.environ["LD_SOMETHING"] = "do-not-leak"
    settings = SupervisorSettings(modules=(OPERATIONS,))
    async with Supervisor(settings, state_dir, SystemClock()) as supervisor:
        yield Bench(supervisor, state_dir)
    del os.environ["HEADWAY_SECRET_TOKEN"], os.environ["LD_SOMETHING"]


@pytest.fixture
def make_bench(
    tmp_path: Path,
) -> Callable[..., Any]:
    """Makes supervisors with other settings, as async context managers."""
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def make(**settings: Any) -> AsyncIterator[Bench]:
        state_dir = StateDir(tmp_path / "state")
        settings.setdefault("modules", (OPERATIONS,))
        async with Supervisor(
            SupervisorSettings(**settings), state_dir, SystemClock()
        ) as supervisor:
            yield Bench(supervisor, state_dir)

    return make
