"""A load worker: one event loop that carries out what the parent hands it.

It lives as long as its socket: when the parent closes it or dies, the worker ends. Whatever goes
wrong outside of a request is sent to the parent with its traceback before the worker ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import socket
import sys
import traceback
from typing import Any, Literal

import msgspec

from headway.backends.backend import Backend
from headway.core.clock import Clock, ns_from_s
from headway.core.errors import ConfigError, TargetError
from headway.load.channel import Channel
from headway.load.goodness import judge_for
from headway.load.inputs import Inputs, Recipe, open_inputs
from headway.load.lifecycle import StageFrame
from headway.load.messages import (
    Arrivals,
    BeginStage,
    Broken,
    Drain,
    Exit,
    FromWorker,
    Grants,
    PrepareStage,
    Ready,
    Sample,
    Setup,
    StageDone,
    StageReady,
    StartFailed,
    ToWorker,
    decoder_for_worker,
    encode,
)
from headway.load.meter import Meter
from headway.load.reporter import FLUSH_S
from headway.load.spec import RunSpec
from headway.load.stage_worker import StageServices, StageWorker

SAMPLE_S = 1.0
_SHUTDOWN_DEADLINE_S = 3.0
_LINGER_S = 1.0
"""How long the last message may take to leave before the worker ends all the same."""


class Worker:
    """The whole of one worker process, from its first message to its end."""

    def __init__(self, sock: socket.socket, clock: Clock) -> None:
        self._clock = clock
        self._decoder = decoder_for_worker()
        self._inbox: asyncio.Queue[ToWorker | None] = asyncio.Queue()
        self._channel = Channel(sock, self._received, lambda: self._inbox.put_nowait(None))
        self._setup: Setup | None = None
        self._stage: StageWorker | None = None
        self._inputs: Inputs | None = None
        self._meter = Meter(clock)
        self._broken = False

    # --- outbox --------------------------------------------------------------------------------

    def send(self, message: FromWorker) -> None:
        """Queue a message to the parent."""
        if isinstance(message, StageDone):
            self._send_sample()  # Stages shorter than a sample's second have one as well.
        self._channel.send(encode(message))

    @property
    def over_high_water(self) -> bool:
        """Whether the parent reads too slowly."""
        return self._channel.over_high_water

    async def wait_drained(self) -> None:
        """Wait until everything sent was taken."""
        await self._channel.wait_drained()

    # --- life ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve the parent until it says so, or is gone."""
        asyncio.get_running_loop().set_exception_handler(self._loop_failed)
        message = await self._inbox.get()
        ticking = asyncio.get_running_loop().create_task(self._tick())
        ticking.add_done_callback(self._tick_ended)
        try:
            # More than once where a calibration goes before the run.
            while isinstance(message, Setup):
                message = await self._carry_out(message)
        finally:
            ticking.cancel()
            await self._linger()

    async def _carry_out(self, setup: Setup) -> ToWorker | None:
        """One run; returns the message that ended it."""
        self._setup = setup
        if setup.log is not None:
            _log_to(setup.log)
        self._meter = Meter(self._clock)
        spec = RunSpec.model_validate_json(setup.spec_json)
        backend = await self._start(spec)
        if backend is None:
            return None
        try:
            return await self._serve(spec, backend)
        except Exception as error:  # noqa: BLE001  told to the parent before this process ends
            self._slot_failed(error)
            return None
        finally:
            await self._end(backend)

    async def _start(self, spec: RunSpec) -> Backend | None:
        from headway.backends.registry import create_backend

        backend: Backend | None = None
        try:
            backend = create_backend(spec.backend, spec.target)
            await backend.startup()
            target = await backend.validate()
        except BaseException as error:  # noqa: BLE001  told to the parent, whatever it is
            self.send(_start_failure(error))
            if backend is not None:
                await self._shut_down(backend)
            return None
        self.send(Ready(msgspec.json.encode(target)))
        # What exists now lives until the end: full collections need not look at it again, and
        # young ones should not interrupt every few hundred requests.
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)
        return backend

    async def _serve(self, spec: RunSpec, backend: Backend) -> ToWorker | None:
        services = StageServices(backend, self, self._clock, self._slot_failed)
        while not self._broken:
            message = await self._inbox.get()
            if message is None or isinstance(message, Exit | Setup):
                return message
            if isinstance(message, PrepareStage):
                await self._prepare(message, spec)
            elif isinstance(message, BeginStage):
                self._begin(message, spec, services)
            elif self._stage is not None:
                self._pass_on(self._stage, message)
        return None

    async def _prepare(self, message: PrepareStage, spec: RunSpec) -> None:
        assert self._setup is not None
        if self._stage is not None:
            await self._stage.close()
            self._stage = None
        if self._inputs is not None:
            self._inputs.close()
        recipe = msgspec.msgpack.decode(self._setup.recipe, type=Recipe)
        self._inputs = open_inputs(recipe, spec.seed, message.stage)
        self.send(StageReady(message.stage))

    def _begin(self, begin: BeginStage, spec: RunSpec, services: StageServices) -> None:
        assert self._setup is not None
        assert self._inputs is not None
        worker = self._setup.worker
        frame = StageFrame(begin.stage, worker, begin.start_ns, spec.capture_text)
        self._meter.stage_begins(begin.stage, worker, begin.start_ns)
        # Only a stop rule asks while the stage runs; the report judges from the records.
        judge = judge_for(spec.judged_by) if spec.limits.min_goodput is not None else None
        self._stage = StageWorker(begin, self._inputs, frame, services, self._setup.observe, judge)

    def _pass_on(self, stage: StageWorker, message: Arrivals | Grants | Drain) -> None:
        if message.stage != stage.stage:
            return  # For a stage that is over already.
        if isinstance(message, Arrivals):
            stage.take_arrivals(message)
        elif isinstance(message, Grants):
            stage.take_grants(message)
        else:
            stage.drain(message)

    async def _end(self, backend: Backend) -> None:
        if self._stage is not None:
            await self._stage.close()
            self._stage = None
        if self._inputs is not None:
            self._inputs.close()
            self._inputs = None
        await self._shut_down(backend)

    async def _shut_down(self, backend: Backend) -> None:
        try:
            await asyncio.wait_for(backend.shutdown(), _SHUTDOWN_DEADLINE_S)
        except BaseException:  # noqa: BLE001  the run is over, and its events are closed
            traceback.print_exc()  # Into the run's workers.log.

    async def _linger(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._channel.wait_drained(), _LINGER_S)
        self._channel.close()

    # --- periodic ------------------------------------------------------------------------------

    async def _tick(self) -> None:
        sample_ns = self._clock.monotonic_ns() + ns_from_s(SAMPLE_S)
        while True:
            due_ns = self._clock.monotonic_ns() + ns_from_s(FLUSH_S)
            await asyncio.sleep(FLUSH_S)
            now_ns = self._clock.monotonic_ns()
            self._meter.loop_lag(now_ns - due_ns)
            if self._stage is not None:
                self._stage.flush()
            # By the clock, not by counting ticks: a loop that a backend keeps busy ticks seldom,
            # and is what has to be told of. It was called a valid measurement.
            if now_ns >= sample_ns:
                sample_ns = now_ns + ns_from_s(SAMPLE_S)
                self._send_sample()

    def _send_sample(self) -> None:
        in_flight = 0 if self._stage is None else self._stage.in_flight
        self.send(Sample(self._meter.sample(in_flight)))

    # --- what arrives, what breaks -------------------------------------------------------------

    def _received(self, payload: bytes) -> None:
        self._inbox.put_nowait(self._decoder.decode(payload))

    def _tick_ended(self, ticking: asyncio.Task[None]) -> None:
        error = None if ticking.cancelled() else ticking.exception()
        if error is not None:
            self._slot_failed(error)  # Without it nothing would be reported any more, unsaid.

    def _slot_failed(self, error: BaseException) -> None:
        self._break("".join(traceback.format_exception(error)))

    def _loop_failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException):
            self._break(context["message"] + "\n" + "".join(traceback.format_exception(error)))

    def _break(self, text: str) -> None:
        self.send(Broken(text))
        self._broken = True
        self._inbox.put_nowait(None)


def _log_to(path: str) -> None:
    """Standard error goes there: a worker that was started early had the command's."""
    with contextlib.suppress(OSError):  # A full disk is no reason not to measure.
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        os.dup2(descriptor, sys.stderr.fileno())
        os.close(descriptor)


def _start_failure(error: BaseException) -> StartFailed:
    kind: Literal["config", "target", "internal"] = "internal"
    if isinstance(error, ConfigError):
        kind = "config"
    elif isinstance(error, TargetError):
        kind = "target"
    text = "".join(traceback.format_exception(error))
    said = str(error)
    if kind == "internal" and said:
        said = f"{type(error).__name__}: {said}"  # SystemExit(3) says no more than "3".
    return StartFailed(kind, said or type(error).__name__, text)
