"""A run on real worker processes: when it may be stopped, what ends its stages, who may die."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter

import msgspec
import psutil
import pytest

from headway.core.clock import SystemClock, monotonic_ns, ns_from_s
from headway.core.errors import ConfigError
from headway.load import Run, RunSpec
from headway.load.fleet import Deadlines, Fleet
from headway.load.messages import Counters, Report, Sample, StageDone
from headway.load.observer import Observer
from headway.records.record import Note, StageEnded, WorkerDied, WorkerSample
from headway.records.run_dir import RunDirectory

DEADLINE_S = 60.0
FAR_S = 600.0


class JumpingClock(SystemClock):
    """The host's clock, moved on by a test: patience ends without being waited for."""

    def __init__(self):
        self.ahead_s = 0.0

    def monotonic_ns(self):
        return monotonic_ns() + ns_from_s(self.ahead_s)


class Watching(Observer):
    """Knows how far the run is, and calls back where it is told to."""

    def __init__(self, **calls):
        self.snapshot = None
        self._calls = calls

    def phase(self, name):
        self._call("phase", name)

    def stage_started(self, event):
        self.snapshot = None
        self._call("stage_started", event)

    def progress(self, snapshot):
        self.snapshot = snapshot
        self._call("progress", snapshot)

    def has_completed(self, number):
        return self.snapshot is not None and self.snapshot.completed >= number

    def _call(self, name, argument):
        if name in self._calls:
            self._calls[name](argument)


def spec(profile, **fields):
    return RunSpec.model_validate(
        {
            "target": {"url": "http://127.0.0.1:1"},
            "backend": {"kind": "null", "latency_s": 0.01},
            "profile": profile,
            "inputs": {"kind": "synthetic", "prompt_tokens": 4, "output_tokens": 4},
            "calibrate": False,
        }
        | fields
    )


async def until(condition, what):
    deadline_ns = monotonic_ns() + ns_from_s(DEADLINE_S)
    while not condition():
        assert monotonic_ns() < deadline_ns, f"waited in vain for {what}"
        await asyncio.sleep(0.005)


async def execute(run):
    return await asyncio.wait_for(run.execute(), DEADLINE_S)


def contents(path):
    directory = RunDirectory(path)
    records, events = list(directory.records()), list(directory.events())
    keys = Counter((record.stage, record.index, record.turn) for record in records)
    assert set(keys.values()) <= {1}, "a request has two terminal records"
    return records, events


def of_type(events, kind):
    return [event for event in events if isinstance(event, kind)]


def workers_of_this_process():
    return [
        child
        for child in psutil.Process().children(recursive=True)
        if child.status() != psutil.STATUS_ZOMBIE and "load worker" in child.name()
    ]


@pytest.fixture
async def fleet(tmp_path):
    """Workers that a test can reach; it lends them to its run."""
    lent = Fleet(tmp_path / "workers.log", Deadlines(silence_s=FAR_S), SystemClock(), None)
    yield lent
    await lent.kill()


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module that this process and workers can import."""
    directory = tmp_path / "modules"
    directory.mkdir()
    monkeypatch.syspath_prepend(directory)
    monkeypatch.setenv("PYTHONPATH", str(directory))
    return lambda name, text: (directory / f"{name}.py").write_text(text)


# --- before the first stage --------------------------------------------------------------------


@pytest.mark.parametrize("phase", ["before", "preparing inputs", "starting workers"])
async def test_a_stop_before_the_first_stage_measures_nothing_and_leaves_nothing(tmp_path, phase):
    """L8."""
    observer = Watching(phase=lambda name: run.request_stop() if name == phase else None)
    run = Run(spec({"kind": "synchronous"}, workers=2), tmp_path / "run", observer)
    if phase == "before":
        run.request_stop()
    result = await execute(run)
    assert result.outcome == "interrupted"
    assert result.stages == ()
    assert not (tmp_path / "run" / "run.json").exists()
    assert workers_of_this_process() == []


async def test_a_run_that_is_cancelled_before_its_first_stage_is_cancelled_and_leaves_nothing(
    tmp_path,
):
    """It was not asked to stop: whoever cancels it must not be told of a result."""
    observer = Watching(phase=lambda name: running.cancel() if name == "starting workers" else None)
    run = Run(spec({"kind": "synchronous"}, workers=2), tmp_path / "run", observer)
    running = asyncio.create_task(run.execute())
    with pytest.raises(asyncio.CancelledError):
        await running
    assert workers_of_this_process() == []
    assert not (tmp_path / "run" / "run.json").exists()


async def test_a_stop_between_a_stage_s_plan_and_its_start_begins_no_stage(tmp_path):
    def shape(plan):
        run.request_stop()
        return plan

    run = Run(spec({"kind": "synchronous"}), tmp_path, shape=shape)
    result = await execute(run)
    assert result.outcome == "interrupted"
    assert result.stages == ()
    records, events = contents(tmp_path)
    assert records == []
    assert of_type(events, StageEnded) == []


async def test_whoever_bounds_the_stages_has_the_last_word(tmp_path):
    def shape(plan):
        return msgspec.structs.replace(plan, max_arrivals=3)

    asked = spec({"kind": "concurrent", "streams": [1, 2]}, limits={"max_requests": 50})
    result = await execute(Run(asked, tmp_path, shape=shape))
    assert [stage.completed for stage in result.stages] == [3, 3]
    assert result.outcome == "completed"


async def test_a_stage_that_may_not_be_ends_the_run_with_the_reason(tmp_path):
    def shape(plan):
        raise ConfigError("at most 10/s may be sent to this target")

    result = await execute(Run(spec({"kind": "constant", "rate": [50]}), tmp_path, shape=shape))
    assert result.outcome == "failed"
    assert result.detail == "at most 10/s may be sent to this target"
    assert contents(tmp_path)[0] == []


# --- what ends a stage -------------------------------------------------------------------------


async def test_a_ramp_ends_with_its_schedule(tmp_path):
    """L7: the end of the arrival process is told apart from a limit."""
    ramp = {"kind": "ramp", "rate_from": 20, "rate_to": 80, "duration_s": 0.4}
    result = await execute(Run(spec(ramp), tmp_path))
    assert result.stages[0].reason == "schedule_ended"
    assert result.stages[0].completed == len(contents(tmp_path)[0]) == 20


FEW_INPUTS = """
from headway.backends.backend import Call
from headway.load.inputs.conversation import Conversation, Turn


class Few:
    def __init__(self, options, seed, stage):
        self._count = options["count"]

    def conversation(self, index):
        if index >= self._count:
            return None
        return Conversation(turns=(Turn(call=Call(prompt=str(index))),))

    def close(self):
        pass
"""


@pytest.mark.parametrize(
    "profile", [{"kind": "concurrent", "streams": [3]}, {"kind": "constant", "rate": [100]}]
)
async def test_inputs_whose_end_only_a_worker_can_find_end_the_stage(tmp_path, module, profile):
    """L7: nobody knew how many there are, and more were asked for."""
    module("few_inputs", FEW_INPUTS)
    inputs = {"kind": "plugin", "name": "few_inputs:Few", "options": {"count": 7}}
    asked = spec(profile, inputs=inputs, limits={"max_requests": 50}, workers=2)
    result = await execute(Run(asked, tmp_path / "run"))
    (stage,) = result.stages
    assert stage.reason == "requests_exhausted"
    assert stage.offered == 7
    records, _ = contents(tmp_path / "run")
    assert sorted(record.index for record in records) == list(range(7))


async def test_records_that_cannot_be_written_end_the_run_with_the_cause(tmp_path):
    """L8. Another program made something of that name."""
    observer = Watching(stage_started=lambda event: (tmp_path / "records.jsonl").mkdir())
    run = Run(spec({"kind": "concurrent", "streams": [4]}, workers=2), tmp_path, observer)
    result = await execute(run)
    assert result.outcome == "failed"
    assert "records.jsonl" in result.detail
    assert workers_of_this_process() == []


async def test_what_a_worker_says_of_an_earlier_stage_changes_nothing_in_this_one(tmp_path, fleet):
    """Trap 39: each stage is fresh."""
    told = []

    def tell(snapshot):
        if snapshot.stage == 1 and not told:
            told.append(snapshot)
            for message in late:
                run.worker_said(fleet.workers[0], message)

    sample = WorkerSample(
        stage=0, worker=0, at_ns=-1, cpu_s=0, wall_s=0, loop_lag_max_ns=0, in_flight=0, rss_bytes=0
    )
    late = [
        Report(
            stage=0,
            records=b"what was late\n",
            ended=b"",
            open_turns=[],
            dropped=b"",
            in_flight=9,
            counters=Counters(sent=1000, completed=1000),
        ),
        StageDone(0),
        Sample(sample),
        Sample(None),
    ]
    # Slow, so that a stage that ended with the late word would miss its last requests.
    asked = spec(
        {"kind": "concurrent", "streams": [2, 2]},
        backend={"kind": "null", "latency_s": 0.5},
        limits={"max_requests": 4},
        workers=1,
    )
    run = Run(asked, tmp_path / "run", Watching(progress=tell), fleet=fleet)
    result = await execute(run)
    assert told
    assert [stage.completed for stage in result.stages] == [4, 4]
    records, events = contents(tmp_path / "run")
    assert len(records) == 8
    assert all(event.at_ns >= 0 for event in of_type(events, WorkerSample))


# --- who dies ----------------------------------------------------------------------------------


def killed(worker):
    """Dead, and known to be by the operating system; its parent has not looked yet."""
    worker.process.kill()
    worker.process.wait(DEADLINE_S)


async def test_the_only_worker_dead_at_the_start_of_a_stage_fails_the_run(tmp_path, fleet):
    def shape(plan):
        killed(fleet.workers[0])
        return plan

    asked = spec({"kind": "synchronous"}, workers=1)
    result = await execute(Run(asked, tmp_path / "run", shape=shape, fleet=fleet))
    assert result.outcome == "failed"
    assert result.detail == "no load worker was left to begin the stage"
    records, events = contents(tmp_path / "run")
    assert records == []
    (died,) = of_type(events, WorkerDied)
    assert (died.cause, died.lost_requests) == ("signal 9 (SIGKILL)", 0)


async def test_one_of_two_workers_dead_at_the_start_of_a_stage_costs_no_request(tmp_path, fleet):
    def shape(plan):
        killed(fleet.workers[0])
        return plan

    asked = spec({"kind": "concurrent", "streams": [4]}, limits={"max_requests": 20}, workers=2)
    result = await execute(Run(asked, tmp_path / "run", shape=shape, fleet=fleet))
    assert result.outcome == "worker_lost"
    (stage,) = result.stages
    assert (stage.completed, stage.errored, stage.workers_lost) == (20, 0, 1)


async def test_a_worker_without_a_part_in_the_stage_may_die_without_a_word(tmp_path, fleet):
    """One stream needs one worker; the other waits for a later stage."""
    watched = Watching()
    asked = spec({"kind": "synchronous"}, limits={"max_seconds": FAR_S}, workers=2)
    run = Run(asked, tmp_path / "run", watched, fleet=fleet)
    running = asyncio.create_task(execute(run))
    await until(lambda: watched.has_completed(2), "the first requests")
    fleet.workers[1].process.kill()
    await until(lambda: len(fleet.workers) == 1, "the worker's burial")
    run.request_stop()
    result = await running
    assert result.stages[0].workers_lost == 0
    assert result.stages[0].errored == 0
    assert of_type(contents(tmp_path / "run")[1], WorkerDied) == []


async def test_a_worker_that_dies_between_two_runs_is_replaced_for_the_second(tmp_path, fleet):
    asked = spec({"kind": "concurrent", "streams": [4]}, limits={"max_requests": 12}, workers=2)
    await execute(Run(asked, tmp_path / "first", fleet=fleet))
    fleet.workers[0].process.kill()
    await until(lambda: len(fleet.workers) == 1, "the worker's burial")
    result = await execute(Run(asked, tmp_path / "second", fleet=fleet))
    assert len(fleet.workers) == 2
    assert result.outcome == "completed"
    assert result.stages[0].completed == 12


async def test_what_a_dead_worker_was_to_send_while_the_others_end_is_lost_and_told(
    tmp_path, fleet
):
    """Everything is handed out: the others may have said already that they are done."""

    def kill_the_first(snapshot):
        for worker in fleet.workers:
            if worker.number == 0:
                worker.process.kill()

    asked = spec(
        {"kind": "constant", "rate": [20]},
        limits={"max_requests": 60},
        handout_ahead_s=60,
        workers=2,
    )
    # In the first step, in which all is handed out: whoever polled could come too late.
    observer = Watching(progress=kill_the_first)
    result = await execute(Run(asked, tmp_path / "run", observer, fleet=fleet))
    records, _ = contents(tmp_path / "run")
    assert sorted(record.index for record in records) == list(range(60))
    lost = [record for record in records if record.status == "errored"]
    assert lost
    assert {(record.worker, record.failure.category) for record in lost} == {(0, "worker_lost")}
    assert result.stages[0].offered == 60
    assert result.stages[0].completed == 60 - len(lost)


async def test_a_worker_that_does_not_end_its_requests_in_time_is_killed_for_it(tmp_path, fleet):
    """L8: it was stopped, and answers neither the drain nor its deadline."""
    watched, clock = Watching(), JumpingClock()
    asked = spec(
        {"kind": "concurrent", "streams": [4]},
        limits={"max_seconds": FAR_S, "grace_s": 0.0},
        workers=2,
    )
    run = Run(asked, tmp_path / "run", watched, fleet=fleet, clock=clock)
    running = asyncio.create_task(execute(run))
    await until(lambda: watched.has_completed(4), "the first requests")
    fleet.workers[1].process.send_signal(signal.SIGSTOP)
    run.request_stop()
    await until(lambda: run._stage._awaited == {1}, "the end of the worker that hears")
    clock.ahead_s = 60.0
    result = await running
    assert result.outcome == "interrupted"
    (died,) = of_type(contents(tmp_path / "run")[1], WorkerDied)
    assert (died.worker, died.cause) == (1, "did not end its requests in time")


async def test_a_worker_that_does_not_open_its_inputs_in_time_fails_the_run(tmp_path, fleet):
    clock = JumpingClock()

    def shape(plan):
        fleet.workers[0].process.send_signal(signal.SIGSTOP)
        return plan

    asked = spec({"kind": "synchronous"}, workers=1)
    run = Run(asked, tmp_path / "run", shape=shape, clock=clock, fleet=fleet)
    running = asyncio.create_task(execute(run))
    await until(lambda: run._stage is not None, "the stage's own barrier")
    clock.ahead_s = 61.0
    result = await running
    assert result.outcome == "failed"
    assert "did not open the inputs of the stage in time" in result.detail


BREAKING_BACKEND = """
import asyncio

from headway.backends.backend import Answer, TargetInfo


class Backend:
    def __init__(self, options, target):
        pass

    async def startup(self):
        pass

    async def validate(self):
        return TargetInfo()

    async def resolve(self, call, history, progress):
        asyncio.get_running_loop().call_soon(self._explode)
        await asyncio.Event().wait()
        return Answer()

    def _explode(self):
        raise ArithmeticError("a callback that nobody awaits")

    async def shutdown(self):
        pass
"""


async def test_what_breaks_a_worker_outside_of_a_request_is_told_with_its_traceback(
    tmp_path, module
):
    """Trap 33: an exception in a callback hung the run."""
    module("breaking_backend", BREAKING_BACKEND)
    asked = spec(
        {"kind": "synchronous"},
        backend={"kind": "plugin", "name": "breaking_backend:Backend"},
        limits={"max_seconds": FAR_S},
        workers=1,
    )
    result = await execute(Run(asked, tmp_path / "run"))
    assert result.outcome == "worker_lost"
    assert result.stages[0].reason == "worker_lost"
    records, events = contents(tmp_path / "run")
    (note,) = [event for event in of_type(events, Note) if event.topic == "worker_error"]
    assert "a callback that nobody awaits" in note.text
    assert "_explode" in note.text
    (died,) = of_type(events, WorkerDied)
    assert died.cause == "an error of its own"
    assert records
    assert {record.status for record in records} <= {"errored", "cancelled"}
