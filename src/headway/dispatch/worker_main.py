"""The worker process: `python -m headway.dispatch.worker_main`, started by `WorkerLife`.

The settings come as the first line of its standard input, and that pipe stays open: its end means
that the parent is dead (trap 25b), whatever killed it. On standard output it gives signs of life,
and one line of JSON says that the worker is ready, or why it is not.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import random
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from headway.core.clock import SystemClock
from headway.core.errors import HeadwayError
from headway.core.json_log import log_as_json
from headway.dispatch.signs_of_life import Heartbeat
from headway.dispatch.worker import Worker
from headway.dispatch.worker_life import END_NOW, WorkerStatus
from headway.dispatch.worker_settings import WorkerSettings
from headway.store.sqlite.store import CONNECTIONS

_log = logging.getLogger("headway.worker")

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_STDIN, _STDOUT, _STDERR = 0, 1, 2
SWITCH_INTERVAL_S = 0.0001
"""How long the event loop may keep the store's thread waiting for Python's lock. The thread needs
it back after each of some dozen statements; with the default of 5 ms a busy loop made a claim and
its ends slower: 62 to 65 against 207 to 210 jobs a second in one run, 51 to 71 against 72 to
89 in a later one on a busier machine."""


@dataclass(frozen=True, slots=True)
class Parent:
    """The pipes from and to the process that started this one.

    Attributes:
        input: Its end means that the parent died.
        output: For signs of life and the status.
    """

    input: int
    output: int

    def announce(self, status: WorkerStatus) -> None:
        """Say whether this worker is ready."""
        with contextlib.suppress(OSError):  # the parent may be gone already
            os.write(self.output, msgspec.json.encode(status) + b"\n")


class StopRequests:
    """Counts the demands to stop: the first asks for a drain, the next for an end now.

    The keeper has a signal of its own for the latter, `END_NOW`.
    """

    def __init__(self) -> None:
        self.drain = asyncio.Event()
        self.now = asyncio.Event()

    def signalled(self) -> None:
        """A signal came."""
        (self.now if self.drain.is_set() else self.drain).set()

    def parent_died(self) -> None:
        """Nobody is there to wait for a drain."""
        _log.warning("the server's process has died; stopping")
        self.end_now()

    def end_now(self) -> None:
        """No drain, or no more of it."""
        self.drain.set()
        self.now.set()


def run_worker(settings: WorkerSettings, parent: Parent) -> int:
    """Run a worker until it is told to stop; the exit code."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        try:
            return runner.run(_main(settings, parent))
        except HeadwayError as error:
            _log.error("%s", error)
            parent.announce(WorkerStatus(ready=False, error=str(error)))
            return 1


async def _main(settings: WorkerSettings, parent: Parent) -> int:
    stops = StopRequests()
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stops.signalled)
    loop.add_signal_handler(END_NOW, stops.end_now)
    loop.add_reader(parent.input, _parent_readable, parent.input, stops)
    worker = Worker(settings, SystemClock(), random.Random())
    await worker.open()
    try:
        _set_title("headway: worker")
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        gc.collect()
        gc.freeze()  # what was imported is never garbage; full collections need not look (trap 16)
        parent.announce(_status(worker))
        return await _work(worker, stops)
    finally:
        loop.remove_reader(parent.input)
        await worker.close()


async def _work(worker: Worker, stops: StopRequests) -> int:
    """Run until told to stop or until it breaks; then give everything back."""
    running = asyncio.create_task(worker.run())
    stopped = asyncio.create_task(stops.drain.wait())
    await asyncio.wait((running, stopped), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    broken = running.done()
    await _drain(worker, stops, broken)
    worker.stop()
    try:
        await running
    except Exception:  # noqa: BLE001 - the last place that can tell
        _log.exception("the worker broke off")
        return 1
    return 0


async def _drain(worker: Worker, stops: StopRequests, broken: bool) -> None:
    settings = worker.settings
    if not broken and not stops.now.is_set():
        gentle = asyncio.create_task(worker.drain(settings.drain_s, settings.drain_grace_s))
        hurry = asyncio.create_task(stops.now.wait())
        await asyncio.wait((gentle, hurry), return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        if gentle.done():
            await gentle
            return
        gentle.cancel()
    await worker.drain(0, 0)


def _parent_readable(parent_fd: int, stops: StopRequests) -> None:
    with contextlib.suppress(BlockingIOError):
        if not os.read(parent_fd, 4096):
            asyncio.get_running_loop().remove_reader(parent_fd)
            stops.parent_died()


def _status(worker: Worker) -> WorkerStatus:
    lanes = {
        lane.value: {"guaranteed": size.guaranteed, "burst": size.burst}
        for lane, size in worker.lane_sizes.items()
    }
    return WorkerStatus(ready=True, pid=os.getpid(), lanes=lanes, connections=CONNECTIONS)


def _set_title(title: str) -> None:
    import setproctitle

    setproctitle.setproctitle(title)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def main() -> int:
    """Started by the process that wants a worker."""
    log_as_json()
    settings = WorkerSettings.model_validate_json(_first_line(_STDIN))
    # What operation modules print must not be taken for a sign of life, nor fill the pipe.
    parent = Parent(_STDIN, os.dup(_STDOUT))
    os.dup2(_STDERR, _STDOUT)
    Heartbeat(parent.output).start()
    return run_worker(settings, parent)


def _first_line(descriptor: int) -> bytes:
    """Read up to the newline and not a byte further: what follows is only ever the end."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(descriptor, 1)
        if not byte:
            raise SystemExit("no settings came on standard input; start workers by `headway`")
        line += byte
    os.set_blocking(descriptor, False)
    return bytes(line)


if __name__ == "__main__":
    sys.exit(main())
