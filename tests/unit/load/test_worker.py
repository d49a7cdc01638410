"""A worker from its first message to its end, with backends that fail in each of their methods."""

from __future__ import annotations

import asyncio
import socket

import msgspec
import pytest

from headway.backends import registry
from headway.backends.backend import Answer, TargetInfo
from headway.core.clock import SystemClock, monotonic_ns, ns_from_s
from headway.core.errors import ConfigError, TargetError
from headway.load.channel import Channel
from headway.load.inputs import prepare
from headway.load.messages import (
    BeginStage,
    Broken,
    Drain,
    Exit,
    Grants,
    PrepareStage,
    Ready,
    Report,
    Sample,
    Setup,
    StageDone,
    StageReady,
    StartFailed,
    decoder_for_parent,
    encode,
)
from headway.load.spec import RunSpec
from headway.load.worker import Worker
from headway.records.record import RequestRecord

DEADLINE_S = 15.0


class FailingBackend:
    """Raises `error` in the method named `where`."""

    def __init__(self, where=None, error=None):
        self._where = where
        self._error = error
        self.shut_down = 0

    def _maybe(self, where):
        if where == self._where:
            raise self._error

    async def startup(self):
        self._maybe("startup")

    async def validate(self):
        self._maybe("validate")
        return TargetInfo(model="m")

    async def resolve(self, call, history, progress):
        progress.sent_ns = monotonic_ns()
        self._maybe("resolve")
        progress.done_ns = monotonic_ns()
        return Answer()

    async def shutdown(self):
        self.shut_down += 1
        self._maybe("shutdown")


class Parent:
    """The other end of a worker's socket."""

    def __init__(self, sock):
        self._decoder = decoder_for_parent()
        self._news = asyncio.Event()
        self.heard = []
        self.channel = Channel(sock, self._received, self._news.set)

    def _received(self, payload):
        self.heard.append(self._decoder.decode(payload))
        self._news.set()

    def say(self, message):
        self.channel.send(encode(message))

    def of(self, kind):
        return [message for message in self.heard if isinstance(message, kind)]

    async def hear(self, kind):
        async with asyncio.timeout(DEADLINE_S):
            while not self.of(kind):
                self._news.clear()
                await self._news.wait()
        return self.of(kind)[0]

    def records(self):
        lines = b"".join(report.records for report in self.of(Report)).splitlines()
        return [msgspec.json.decode(line, type=RequestRecord) for line in lines]


@pytest.fixture
async def start(monkeypatch, tmp_path):
    running = []

    async def begin(backend):
        monkeypatch.setattr(registry, "create_backend", lambda *arguments: backend)
        spec = RunSpec.model_validate({"target": {"url": "http://x"}})
        recipe = await prepare(spec.inputs, spec.backend, spec.seed, tmp_path)
        ours, theirs = socket.socketpair()
        parent = Parent(ours)
        task = asyncio.create_task(Worker(theirs, SystemClock()).run())
        running.append((parent, task))
        parent.say(Setup(0, spec.model_dump_json().encode(), msgspec.msgpack.encode(recipe)))
        return parent, task

    yield begin
    for parent, task in running:
        parent.channel.close()
        await asyncio.wait_for(task, DEADLINE_S)


async def run_stage(parent, requests):
    parent.say(PrepareStage(0))
    await parent.hear(StageReady)
    start_ns = monotonic_ns()
    parent.say(BeginStage(stage=0, start_ns=start_ns, slots=2, closed_loop=True))
    parent.say(Grants(0, 0, requests))
    parent.say(Drain(0))
    await parent.hear(StageDone)


async def test_a_stage_runs_and_the_backend_is_shut_down_once(start):
    backend = FailingBackend()
    parent, task = await start(backend)
    ready = await parent.hear(Ready)
    assert msgspec.json.decode(ready.target_json, type=TargetInfo).model == "m"
    await run_stage(parent, 7)
    assert sorted(record.index for record in parent.records()) == list(range(7))
    parent.say(Exit())
    await asyncio.wait_for(task, DEADLINE_S)
    assert backend.shut_down == 1


async def test_a_stage_of_less_than_a_second_has_a_sample_before_it_is_done(start):
    """N1: without one nothing tells whether the client was the limit."""
    parent, _ = await start(FailingBackend())
    await parent.hear(Ready)
    await run_stage(parent, 3)
    (told,) = [message.sample for message in parent.of(Sample) if message.sample is not None]
    assert told.stage == 0
    assert told.wall_s > 0


async def test_a_loop_that_a_backend_keeps_busy_is_sampled_by_the_clock(start):
    """N1: ticks were counted, and a loop that stands still ticks seldom: no sample, valid."""

    class Busy(FailingBackend):
        async def resolve(self, call, history, progress):
            progress.sent_ns = monotonic_ns()
            until_ns = monotonic_ns() + ns_from_s(0.3)
            while monotonic_ns() < until_ns:
                pass
            await asyncio.sleep(0)
            progress.done_ns = monotonic_ns()
            return Answer()

    parent, _ = await start(Busy())
    await parent.hear(Ready)
    await run_stage(parent, 16)
    samples = [message.sample for message in parent.of(Sample) if message.sample is not None]
    assert len(samples) > 1, "before the end as well"
    assert max(sample.loop_lag_max_ns for sample in samples) > ns_from_s(0.1)


@pytest.mark.parametrize("where", ["startup", "validate"])
@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (ConfigError("choose another --ca-file"), "config", "choose another --ca-file"),
        (TargetError("the target answers HTML"), "target", "the target answers HTML"),
        (ZeroDivisionError("a bug"), "internal", "ZeroDivisionError: a bug"),
        (SystemExit(4), "internal", "SystemExit: 4"),
        (RecursionError(), "internal", "RecursionError"),
    ],
)
async def test_a_worker_that_cannot_start_says_why_with_its_traceback(
    start, where, error, kind, said
):
    """L1, L8."""
    backend = FailingBackend(where, error)
    parent, task = await start(backend)
    failed = await parent.hear(StartFailed)
    assert failed.kind == kind
    assert failed.message == said
    assert "Traceback" in failed.traceback
    await asyncio.wait_for(task, DEADLINE_S)
    assert backend.shut_down == 1, "also after a failed startup"


async def test_a_backend_that_raises_in_resolve_fails_its_requests_only(start):
    parent, _ = await start(FailingBackend("resolve", ValueError("no such field")))
    await parent.hear(Ready)
    await run_stage(parent, 3)
    assert [record.status for record in parent.records()] == ["errored"] * 3
    assert parent.records()[0].failure.message == "the backend raised ValueError: no such field"


async def test_what_a_backend_says_and_utf_8_cannot_is_told_all_the_same(start):
    """Lone surrogates, as of a file's name: the batch that held them was lost, and all after it."""
    parent, _ = await start(FailingBackend("resolve", ValueError("no file \udc80")))
    await parent.hear(Ready)
    await run_stage(parent, 70)
    records = parent.records()
    assert sorted(record.index for record in records) == list(range(70))
    assert {record.status for record in records} == {"errored"}
    assert {record.failure.message for record in records} == {
        "the backend raised ValueError: no file ?"
    }
    told = [report.counters.error_messages for report in parent.of(Report)]
    assert any("the backend raised ValueError: no file ?" in messages for messages in told)


async def test_a_worker_that_can_report_nothing_says_so_and_ends(start):
    """Invariant 4: the task that reports had failed, and nobody looked at it."""

    class Absurd(FailingBackend):
        async def resolve(self, call, history, progress):
            progress.sent_ns = progress.done_ns = monotonic_ns()
            progress.finish_reason = object()
            return Answer()

    parent, task = await start(Absurd())
    await parent.hear(Ready)
    parent.say(PrepareStage(0))
    await parent.hear(StageReady)
    parent.say(BeginStage(stage=0, start_ns=monotonic_ns(), slots=2, closed_loop=True))
    parent.say(Grants(0, 0, 3))
    broken = await parent.hear(Broken)
    assert "TypeError" in broken.traceback
    await asyncio.wait_for(task, DEADLINE_S)


async def test_a_backend_that_raises_in_shutdown_is_told_and_the_worker_still_ends(start, capfd):
    parent, task = await start(FailingBackend("shutdown", OSError("bad descriptor")))
    await parent.hear(Ready)
    parent.say(Exit())
    await asyncio.wait_for(task, DEADLINE_S)
    assert "bad descriptor" in capfd.readouterr().err


async def test_a_worker_ends_with_its_parent_whatever_runs(start):
    """L8: death is symmetric."""

    class Hanging(FailingBackend):
        async def resolve(self, call, history, progress):
            await asyncio.Event().wait()

    backend = Hanging()
    parent, task = await start(backend)
    await parent.hear(Ready)
    parent.say(PrepareStage(0))
    await parent.hear(StageReady)
    parent.say(BeginStage(stage=0, start_ns=monotonic_ns(), slots=2, closed_loop=True))
    parent.say(Grants(0, 0, 2))
    parent.channel.close()
    began_ns = monotonic_ns()
    await asyncio.wait_for(task, DEADLINE_S)
    assert monotonic_ns() - began_ns < ns_from_s(10)
    assert backend.shut_down == 1


async def test_a_worker_without_a_word_from_its_parent_just_ends(tmp_path):
    ours, theirs = socket.socketpair()
    task = asyncio.create_task(Worker(theirs, SystemClock()).run())
    await asyncio.sleep(0)
    ours.close()
    await asyncio.wait_for(task, DEADLINE_S)


async def test_a_backend_that_cannot_even_be_made_says_why(tmp_path):
    """L9: the name of a plug-in that is not installed."""
    spec = RunSpec.model_validate(
        {"target": {"url": "http://x"}, "backend": {"kind": "plugin", "name": "nobody_made_this"}}
    )
    recipe = await prepare(spec.inputs, spec.backend, spec.seed, tmp_path)
    ours, theirs = socket.socketpair()
    parent = Parent(ours)
    task = asyncio.create_task(Worker(theirs, SystemClock()).run())
    parent.say(Setup(0, spec.model_dump_json().encode(), msgspec.msgpack.encode(recipe)))
    failed = await parent.hear(StartFailed)
    assert failed.kind == "config"
    assert "no installed package offers 'nobody_made_this'" in failed.message
    await asyncio.wait_for(task, DEADLINE_S)
    parent.channel.close()


async def test_an_exception_in_a_callback_ends_the_worker_and_is_told(start):
    """Trap 33: it hung the run, because nobody awaits a callback."""

    class Exploding(FailingBackend):
        async def resolve(self, call, history, progress):
            asyncio.get_running_loop().call_soon(self._explode)
            await asyncio.Event().wait()

        def _explode(self):
            raise ArithmeticError("nobody awaits this")

    backend = Exploding()
    parent, task = await start(backend)
    await parent.hear(Ready)
    parent.say(PrepareStage(0))
    await parent.hear(StageReady)
    parent.say(BeginStage(stage=0, start_ns=monotonic_ns(), slots=1, closed_loop=True))
    parent.say(Grants(0, 0, 1))
    broken = await parent.hear(Broken)
    assert "nobody awaits this" in broken.traceback
    assert "_explode" in broken.traceback
    await asyncio.wait_for(task, DEADLINE_S)
    assert backend.shut_down == 1


async def test_what_the_loop_warns_of_without_an_exception_breaks_nothing(start):
    class Warned(FailingBackend):
        async def resolve(self, call, history, progress):
            loop = asyncio.get_running_loop()
            loop.call_exception_handler({"message": "an unclosed transport"})
            return await super().resolve(call, history, progress)

    parent, _ = await start(Warned())
    await parent.hear(Ready)
    await run_stage(parent, 3)
    assert [record.status for record in parent.records()] == ["completed"] * 3
    assert parent.of(Broken) == []


async def test_work_for_no_stage_or_for_one_that_is_over_is_not_carried_out(start):
    """A grant may be under way while its stage ends."""
    parent, _ = await start(FailingBackend())
    await parent.hear(Ready)
    parent.say(Grants(0, 0, 5))
    parent.say(Drain(0))
    await run_stage(parent, 4)
    parent.say(PrepareStage(1))
    async with asyncio.timeout(DEADLINE_S):
        while len(parent.of(StageReady)) < 2:  # noqa: ASYNC110  the list is the event
            await asyncio.sleep(0.005)
    parent.say(BeginStage(stage=1, start_ns=monotonic_ns(), slots=2, closed_loop=True))
    parent.say(Grants(0, 0, 9))
    parent.say(Grants(1, 0, 3))
    parent.say(Drain(0))
    parent.say(Drain(1))
    async with asyncio.timeout(DEADLINE_S):
        while len(parent.of(StageDone)) < 2:  # noqa: ASYNC110  the list is the event
            await asyncio.sleep(0.005)
    records = sorted((record.stage, record.index) for record in parent.records())
    assert records == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2)]


async def test_a_worker_without_a_stage_gives_its_sign_of_life_and_no_sample(start):
    """A long calibration, or slow inputs, must not make it look dead."""
    parent, _ = await start(FailingBackend())
    await parent.hear(Ready)
    sign = await parent.hear(Sample)
    assert sign.sample is None
