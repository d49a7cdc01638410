"""The fleet of worker processes: started together, watched, and ended without exception.

A worker's death is noticed through its socket, at once; a worker that is silent (stopped, stuck)
through the deadline of its sign of life, and is then killed. In both cases what it had sent is
read to the end first, so that nothing finished is called lost.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from headway.backends.backend import TargetInfo
from headway.core.clock import NS_PER_S, Clock
from headway.core.errors import ConfigError, HeadwayError, TargetError, WorkerLost
from headway.load.early import EarlyWorker
from headway.load.messages import Exit, FromWorker, Ready, Setup, StartFailed
from headway.load.worker_process import WorkerProcess

_EXIT_DEADLINE_S = 5.0
_REAP_DEADLINE_S = 5.0
_LAST_STEPS_S = 2.0
"""What a process may take from letting go of its socket to its end: the kernel closes the one
before the other can be seen, and a busy machine puts long pauses between the two."""
_WATCH_S = 0.5
_LOG_TAIL_BYTES = 2_000


class Deadlines(msgspec.Struct, frozen=True, kw_only=True):
    """How long workers may take.

    Attributes:
        start_s: From the start until every worker is ready.
        silence_s: Without a sign of life for this long a worker counts as dead.
    """

    start_s: float = 30.0
    silence_s: float = 10.0


class RunSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What every worker is told of the run.

    Attributes:
        spec_json: The RunSpec as JSON.
        recipe: The inputs' recipe as msgpack.
        observe: Whether somebody watches single requests.
    """

    spec_json: bytes
    recipe: bytes
    observe: bool = False


class FleetListener(Protocol):
    """Who hears what workers say while a run goes on."""

    def worker_said(self, worker: WorkerProcess, message: FromWorker) -> None:
        """A message of a ready worker."""
        ...

    def worker_lost(self, worker: WorkerProcess, cause: str) -> None:
        """A worker died that was not told to; it is reaped and its last words were heard."""
        ...


class Fleet:
    """All workers of a run.

    Args:
        log: File that takes the workers' standard error.
        deadlines: How long workers may take.
        clock: The host's clock.
        listener: Hears the workers once they are ready. It may be changed between two runs on one
            fleet.
    """

    def __init__(
        self, log: Path, deadlines: Deadlines, clock: Clock, listener: FleetListener
    ) -> None:
        self._log = log
        self._deadlines = deadlines
        self._clock = clock
        self.listener = listener
        self._setups: dict[int, RunSetup] = {}
        self._workers: dict[int, WorkerProcess] = {}
        self._starting: dict[int, asyncio.Future[TargetInfo]] = {}
        self._deaths: set[asyncio.Task[None]] = set()
        self._watching: asyncio.Task[None] | None = None
        self._closing = False

    @property
    def workers(self) -> Sequence[WorkerProcess]:
        """The workers that live, in order."""
        return [self._workers[number] for number in sorted(self._workers)]

    def spawn(self, count: int) -> None:
        """Start processes until there are `count`; they load what they need meanwhile."""
        for number in range(count):
            if number not in self._workers:
                self._spawn_one(number)

    def adopt(self, spawned: EarlyWorker) -> None:
        """Take over a process that was started before there was a fleet, as its first worker."""
        self._take(0, spawned)

    async def start(self, count: int, setup: RunSetup) -> TargetInfo:
        """Bring the fleet to `count` ready workers: the barrier before a stage.

        Returns:
            What a worker learned of the target (from the workers that were there: nothing).

        Raises:
            ConfigError, TargetError, WorkerLost: a worker cannot work; all are ended first.
        """
        if self._watching is None:
            self._watching = asyncio.get_running_loop().create_task(self._watch())
        self.spawn(count)
        waiting = [
            self._set_up(number, setup)
            for number in self._workers
            if self._setups.get(number) is not setup
        ]
        try:
            # Not wait_for, which leaves the gathered future's end unheard when it is cancelled:
            # Ctrl-C at the start printed a traceback.
            async with asyncio.timeout(self._deadlines.start_s):
                infos = await asyncio.gather(*waiting)
        except TimeoutError:
            await self.kill()
            raise WorkerLost(
                f"a load worker was not ready within {self._deadlines.start_s:g} s: "
                f"{self._log_tail() or 'it wrote nothing'}"
            ) from None
        except BaseException:
            await self.kill()
            raise
        return infos[0] if infos else TargetInfo()

    async def close(self) -> None:
        """End every worker in peace; kill what does not end in time."""
        self._closing = True
        for worker in self.workers:
            worker.send(Exit())
        waits = [worker.last_words_heard(_EXIT_DEADLINE_S) for worker in self.workers]
        await asyncio.gather(*waits)
        await self.kill()

    async def kill(self) -> None:
        """End every worker now; no process is left when this returns."""
        self._closing = True
        doomed = self.workers
        for worker in doomed:
            worker.kill("ended by the run")
        await asyncio.gather(*(worker.last_words_heard(_REAP_DEADLINE_S) for worker in doomed))
        if self._deaths:
            await asyncio.wait(self._deaths, timeout=_REAP_DEADLINE_S)
        for worker in doomed:
            worker.channel.close()
        self._workers.clear()
        self._setups.clear()
        self._forget_starting()
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        self._closing = False
        _remove_if_empty(self._log)

    # --- one worker ----------------------------------------------------------------------------

    def _set_up(self, number: int, setup: RunSetup) -> asyncio.Future[TargetInfo]:
        """Tell a worker what the run is; the future is done when it is ready for it."""
        if number not in self._starting:
            self._starting[number] = asyncio.get_running_loop().create_future()
        self._setups[number] = setup
        log = str(self._log)
        told = Setup(number, setup.spec_json, setup.recipe, setup.observe, log)
        self._workers[number].send(told)
        return self._starting[number]

    def _spawn_one(self, number: int) -> None:
        with self._log.open("ab") as log:
            self._take(number, EarlyWorker(log))

    def _take(self, number: int, spawned: EarlyWorker) -> None:
        worker = WorkerProcess(number, spawned, self._clock)
        worker.on_message = self._worker_said
        worker.on_closed = self._worker_closed
        self._workers[number] = worker
        self._starting[number] = asyncio.get_running_loop().create_future()

    def _forget_starting(self) -> None:
        for starting in self._starting.values():
            if not starting.cancel() and not starting.cancelled():
                starting.exception()  # Looked at, so that nobody is warned of an unseen error.
        self._starting.clear()

    def _worker_said(self, worker: WorkerProcess, message: FromWorker) -> None:
        starting = self._starting.get(worker.number)
        if starting is None:
            self.listener.worker_said(worker, message)
        elif isinstance(message, Ready):
            del self._starting[worker.number]
            if not starting.done():
                starting.set_result(msgspec.json.decode(message.target_json, type=TargetInfo))
        elif isinstance(message, StartFailed) and not starting.done():
            starting.set_exception(_start_error(message))

    def _worker_closed(self, worker: WorkerProcess) -> None:
        dying = asyncio.get_running_loop().create_task(self._bury(worker))
        self._deaths.add(dying)
        dying.add_done_callback(self._deaths.discard)

    async def _bury(self, worker: WorkerProcess) -> None:
        if not await worker.reap(_LAST_STEPS_S):
            worker.kill("closed its socket and went on")
            await worker.reap(_REAP_DEADLINE_S)
        if self._closing:
            return
        if self._workers.get(worker.number) is worker:
            del self._workers[worker.number]
            self._setups.pop(worker.number, None)
        starting = self._starting.get(worker.number)
        if starting is None:
            self.listener.worker_lost(worker, worker.cause_of_death())
        elif not starting.done():
            starting.set_exception(
                WorkerLost(
                    f"load worker {worker.number} ended before it was ready "
                    f"({worker.cause_of_death()}): {self._log_tail() or 'it wrote nothing'}"
                )
            )

    async def _watch(self) -> None:
        """Kill workers without a sign of life; they are then buried like any other."""
        limit_ns = int(self._deadlines.silence_s * NS_PER_S)
        checked_ns = self._clock.monotonic_ns()
        while True:
            await asyncio.sleep(_WATCH_S)
            now_ns = self._clock.monotonic_ns()
            # This process itself may have been stopped (Ctrl-Z): what the workers sent meanwhile
            # is unread, and their silence is ours.
            was_away = now_ns - checked_ns > 4 * _WATCH_S * NS_PER_S
            checked_ns = now_ns
            for worker in self.workers:
                if was_away:
                    worker.heard_ns = now_ns
                elif now_ns - worker.heard_ns > limit_ns and worker.number not in self._starting:
                    worker.kill(f"silent for {self._deadlines.silence_s:g} s")

    def _log_tail(self) -> str:
        try:
            return self._log.read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace")
        except FileNotFoundError:
            return ""


class Barrier:
    """A fleet of a known size that is made whole before each stage."""

    def __init__(self, fleet: Fleet, count: int, setup: RunSetup) -> None:
        self.fleet = fleet
        self._count = count
        self._setup = setup

    async def reach(self) -> TargetInfo:
        """Replace the workers that died; wait until all are ready. Raises as `Fleet.start`."""
        return await self.fleet.start(self._count, self._setup)


def _start_error(failed: StartFailed) -> HeadwayError:
    if failed.kind == "config":
        error: HeadwayError = ConfigError(failed.message)
    elif failed.kind == "target":
        error = TargetError(failed.message)
    else:
        error = WorkerLost(f"a load worker could not start: {failed.message}")
    error.add_note(f"In the worker:\n{failed.traceback}")
    return error


def _remove_if_empty(log: Path) -> None:
    if log.exists() and log.stat().st_size == 0:
        os.unlink(log)
