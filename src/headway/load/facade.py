"""The two short ways to use the load engine from Python."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from headway.load.messages import RequestUpdate
from headway.load.observer import LiveSnapshot, Observer
from headway.load.results import RunResult, StageResult
from headway.load.runner import Run
from headway.load.spec import RunSpec
from headway.records.record import StageStarted

Update = StageStarted | LiveSnapshot | Sequence[RequestUpdate] | StageResult | RunResult
_STREAM_LIMIT = 10_000


async def run(spec: RunSpec, run_dir: Path, observer: Observer | None = None) -> RunResult:
    """Carry out a run and keep it in `run_dir`.

    Args:
        spec: What is asked.
        run_dir: A directory without a run in it; made when absent.
        observer: Hears what happens while it happens.

    Returns:
        How it ended; what was measured is in the directory.

    Raises:
        ConfigError: the description, the inputs or the directory cannot be used.
        TargetError: the target cannot be measured.
        WorkerLost: a worker died before the first stage.
    """
    return await Run(spec, run_dir, observer).execute()


async def stream(spec: RunSpec, run_dir: Path, requests: bool = True) -> AsyncIterator[Update]:
    """Carry out a run and iterate over what happens; the last item is the RunResult.

    A reader that is slower than the run loses the oldest snapshots and request updates, never a
    stage's start or result; the records in the directory are complete in any case. Leaving the
    iteration early ends the run.

    Args:
        spec: What is asked.
        run_dir: A directory without a run in it; made when absent.
        requests: Whether to yield batches of changes in the life of single requests.

    Raises:
        ConfigError, TargetError, WorkerLost: as `run`.
    """
    observer = _Queueing(requests)
    run = Run(spec, run_dir, observer)
    running = asyncio.get_running_loop().create_task(run.execute())
    running.add_done_callback(lambda task: observer.wake.set())
    try:
        while not running.done():
            await observer.wake.wait()
            observer.wake.clear()
            for update in observer.take():
                yield update
        yield await running
    finally:
        if not running.done():
            run.abort()
            await running


class _Queueing(Observer):
    def __init__(self, wants_requests: bool) -> None:
        self.wants_requests = wants_requests
        self.wake = asyncio.Event()
        self._updates: list[Update] = []

    def take(self) -> list[Update]:
        updates, self._updates = self._updates, []
        return updates

    def stage_started(self, event: StageStarted) -> None:
        self._add(event)

    def progress(self, snapshot: LiveSnapshot) -> None:
        self._add(snapshot)

    def requests(self, updates: Sequence[RequestUpdate]) -> None:
        self._add(updates)

    def stage_ended(self, result: StageResult) -> None:
        self._add(result)

    def _add(self, update: Update) -> None:
        if len(self._updates) >= _STREAM_LIMIT:
            keep = [u for u in self._updates if isinstance(u, StageStarted | StageResult)]
            self._updates = keep + self._updates[-_STREAM_LIMIT // 2 :]
        self._updates.append(update)
        self.wake.set()
