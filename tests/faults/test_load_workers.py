"""Workers, the parent, the target and the disk fail: bounded time, one record each, no orphan."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psutil
import pytest

from headway.core.clock import monotonic_ns, ns_from_s
from headway.core.errors import ConfigError, TargetError
from headway.load import Run, RunSpec
from headway.load.fleet import Deadlines
from headway.load.observer import Observer
from headway.load.preparing import prepare_inputs
from headway.records.record import StageEnded, WorkerDied
from headway.records.run_dir import RunDirectory

DEADLINE_S = 40.0
UNHURRIED = {"kind": "null", "latency_s": 0.2}
"""Trouble is made at the run's next look, a tenth of a second later on an idle machine: enough has
to be in flight then still."""


def spec(profile, *, url="http://127.0.0.1:1", backend=None, **fields):
    return RunSpec.model_validate(
        {
            "target": {"url": url},
            "backend": backend or {"kind": "null", "latency_s": 0.02},
            "profile": profile,
            "inputs": {"kind": "synthetic", "prompt_tokens": 4, "output_tokens": 4},
            "calibrate": False,
        }
        | fields
    )


def workers_of(pid):
    return [
        child
        for child in psutil.Process(pid).children(recursive=True)
        if "headway load worker" in child.name() or "worker_main" in " ".join(child.cmdline())
    ]


async def until(condition, what):
    deadline_ns = monotonic_ns() + ns_from_s(DEADLINE_S)
    while not condition():
        assert monotonic_ns() < deadline_ns, f"waited in vain for {what}"
        await asyncio.sleep(0.01)


class Trouble(Observer):
    """Does something once, as soon as the first stage has completed so many requests.

    From within the run's own callback: whoever polled for it could come too late on a busy machine.
    """

    def __init__(self, completed, make):
        self.completed = completed
        self.make = make
        self.was_made = False
        self.start_ns = 0
        self.death_ns = 0
        """When a worker's death was known, in the stage's time."""

    def stage_started(self, event):
        self.start_ns = event.started_monotonic_ns

    def event(self, event):
        if isinstance(event, WorkerDied):
            self.death_ns = monotonic_ns() - self.start_ns

    def progress(self, snapshot):
        if not self.was_made and snapshot.completed >= self.completed:
            self.was_made = True
            self.make()


def send_to_worker(place, signal_number):
    return lambda: workers_of(os.getpid())[place].send_signal(signal_number)


async def execute(run):
    return await asyncio.wait_for(run.execute(), DEADLINE_S)


def contents(path):
    directory = RunDirectory(path)
    records = list(directory.records())
    keys = Counter((record.stage, record.index, record.turn) for record in records)
    assert set(keys.values()) <= {1}, "a request has two terminal records"
    return records, list(directory.events())


def of_type(events, kind):
    return [event for event in events if isinstance(event, kind)]


async def test_a_killed_worker_costs_its_requests_and_nothing_else(tmp_path):
    """Issue 2, must show 6; trap 34: 50 conversations of 5 turns, one of two workers killed -9."""
    run = Run(
        spec(
            {"kind": "concurrent", "streams": [20]},
            backend=UNHURRIED,
            inputs={"kind": "synthetic", "turns": 5, "prompt_tokens": 4, "output_tokens": 4},
            limits={"max_requests": 50},
            workers=2,
        ),
        tmp_path,
        Trouble(20, send_to_worker(0, signal.SIGKILL)),
    )
    result = await execute(run)
    records, events = contents(tmp_path)
    assert len(records) == 250
    lost = [record for record in records if record.status == "errored"]
    assert lost
    assert {record.failure.category for record in lost} == {"worker_lost"}
    (died,) = of_type(events, WorkerDied)
    assert "signal 9" in died.cause
    (ended,) = of_type(events, StageEnded)
    assert ended.offered == 50
    assert result.outcome == "worker_lost"
    assert result.stages[0].workers_lost == 1
    assert result.stages[0].completed + result.stages[0].errored == 250


def random_graphs(path, number):
    """Rows of 2 to 7 turns, each after up to three of those before it; and how many each has."""
    chance = random.Random(5)
    rows = []
    for _ in range(number):
        turns = []
        for turn in range(chance.randint(2, 7)):
            after = chance.sample(range(turn), min(turn, chance.randint(0, 3)))
            turns.append({"id": turn, "prompt": f"turn {turn}", "after": after})
        rows.append({"turns": turns})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {index: len(row["turns"]) for index, row in enumerate(rows)}


async def test_a_killed_worker_leaves_no_turn_of_a_graph_without_its_record(tmp_path):
    """L6, trap 34: siblings in flight, turns that were ready, and turns that waited for these."""
    turns = random_graphs(tmp_path / "graphs.jsonl", 60)
    run = Run(
        spec(
            {"kind": "concurrent", "streams": [12]},
            backend=UNHURRIED,
            inputs={"kind": "file", "path": str(tmp_path / "graphs.jsonl")},
            workers=2,
        ),
        tmp_path / "run",
        Trouble(20, send_to_worker(0, signal.SIGKILL)),
    )
    result = await execute(run)
    records, events = contents(tmp_path / "run")
    assert Counter(record.index for record in records) == turns
    lost = [record for record in records if record.status == "errored"]
    assert lost
    assert {record.failure.category for record in lost} == {"worker_lost"}
    (ended,) = of_type(events, StageEnded)
    assert ended.offered == 60
    assert result.stages[0].completed + len(lost) == len(records)


async def test_the_last_worker_killed_ends_the_stage_and_the_next_one_starts_afresh(tmp_path):
    run = Run(
        spec({"kind": "concurrent", "streams": [4, 3]}, limits={"max_seconds": 5.0}, workers=1),
        tmp_path,
        Trouble(4, send_to_worker(0, signal.SIGKILL)),
    )
    result = await execute(run)
    first, second = result.stages
    assert first.reason == "worker_lost"
    assert second.reason == "max_seconds"
    assert second.completed > 0
    assert result.outcome == "worker_lost"
    contents(tmp_path)


async def test_an_open_loop_keeps_its_schedule_when_a_worker_dies(tmp_path):
    """What was not due yet is sent by the others, at its own time: never skipped."""
    trouble = Trouble(100, send_to_worker(1, signal.SIGKILL))
    run = Run(
        spec({"kind": "constant", "rate": [200]}, limits={"max_requests": 400}, workers=2),
        tmp_path,
        trouble,
    )
    result = await execute(run)
    records, _ = contents(tmp_path)
    assert sorted(record.index for record in records) == list(range(400))
    assert all(record.due_ns == record.index * 5_000_000 for record in records)
    lost = [record for record in records if record.status == "errored"]
    assert all(record.due_ns < trouble.death_ns for record in lost), "only what was due is lost"
    assert sum(record.worker == 0 for record in records) > 200, "the rest went to the other"
    assert result.stages[0].offered == 400


async def test_a_stopped_worker_is_noticed_by_its_silence(tmp_path):
    run = Run(
        spec({"kind": "concurrent", "streams": [4]}, limits={"max_requests": 400}, workers=2),
        tmp_path,
        Trouble(10, send_to_worker(0, signal.SIGSTOP)),
        deadlines=Deadlines(silence_s=4.0),  # A busy machine makes the other wait as well.
    )
    await execute(run)
    records, events = contents(tmp_path)
    assert len(records) == 400
    (died,) = of_type(events, WorkerDied)
    assert died.cause == "silent for 4 s"


def rows(path, count):
    """A file of prompts: it is sent as it is, so the target is not asked to count tokens."""
    lines = [json.dumps({"prompt": f"row {number}"}) + "\n" for number in range(count)]
    path.write_text("".join(lines))
    return {"kind": "file", "path": str(path)}


async def test_a_silent_server_does_not_outlive_max_seconds(tmp_path, sim):
    """Trap 32: 2 s became 8 s, and a silent server was never stopped; L8."""
    server = sim(fault="stall:at=0")
    run = Run(
        spec(
            {"kind": "concurrent", "streams": [4]},
            inputs=rows(tmp_path / "rows.jsonl", 100),
            url=server.url,
            backend={"kind": "openai-chat"},
            limits={"max_seconds": 1.0, "grace_s": 0.5},
        ),
        tmp_path / "run",
    )
    result = await execute(run)
    records, _ = contents(tmp_path / "run")
    assert result.stages[0].reason == "max_seconds"
    assert result.stages[0].elapsed_s < 6
    assert [record.status for record in records] == ["cancelled"] * 4
    assert all(record.sent_ns is not None for record in records)


async def test_partial_answers_are_kept_when_a_request_is_cut_off(tmp_path, sim):
    """Trap 35: partial responses were lost (399 of 399)."""
    server = sim(ttft=0.01, itl=0.01, fault="stall:at=5")
    run = Run(
        spec(
            {"kind": "synchronous"},
            url=server.url,
            backend={"kind": "openai-chat"},
            inputs={"kind": "synthetic", "prompt_tokens": 4, "output_tokens": 50},
            limits={"max_seconds": 4.0, "grace_s": 0.1},
        ),
        tmp_path,
    )
    await execute(run)
    (record,), _ = contents(tmp_path)
    assert record.status == "cancelled"
    assert record.first_token_ns is not None
    assert record.partial_text


async def test_a_server_killed_in_the_middle_makes_errors_and_the_run_goes_on(tmp_path, sim):
    server = sim(ttft=0.01, itl=0)
    run = Run(
        spec(
            {"kind": "constant", "rate": [50]},
            url=server.url,
            backend={"kind": "openai-chat"},
            limits={"max_seconds": 2.0, "grace_s": 1.0},
        ),
        tmp_path,
        Trouble(10, server.process.kill),
    )
    result = await execute(run)
    records, _ = contents(tmp_path)
    assert len(records) == 100
    assert result.stages[0].completed >= 10
    assert {r.failure.category for r in records if r.failure} <= {"connect", "disconnected"}


async def test_error_rules_end_a_stage_and_with_scope_run_the_run(tmp_path, sim):
    server = sim(fault="error:status=503")
    run = Run(
        spec(
            {"kind": "concurrent", "streams": [2, 4]},
            url=server.url,
            backend={"kind": "openai-chat"},
            limits={"max_errors": 20, "max_seconds": 20, "stop_scope": "run"},
        ),
        tmp_path,
    )
    result = await execute(run)
    assert len(result.stages) == 1
    assert result.stages[0].reason == "max_errors"
    assert result.outcome == "stopped"
    assert result.stages[0].elapsed_s < 10


async def test_a_target_that_cannot_be_reached_is_an_error_before_anything_starts(tmp_path):
    """L1: a worker that cannot work says why, with its traceback."""
    run = Run(
        spec(
            {"kind": "synchronous"},
            backend={"kind": "openai-chat"},
            inputs=rows(tmp_path / "rows.jsonl", 3),
            workers=2,
        ),
        tmp_path / "run",
    )
    with pytest.raises(TargetError) as caught:
        await execute(run)
    assert any("In the worker" in note for note in caught.value.__notes__)
    assert workers_of(os.getpid()) == []
    assert not (tmp_path / "run" / "run.json").exists()


async def test_a_target_that_never_counts_tokens_does_not_keep_a_run_from_starting(tmp_path, sim):
    """Trap 51, L8: the probes have a deadline; then the text is counted in words, and said so."""
    server = sim(fault="stall:at=0")
    asked = spec({"kind": "synchronous"}, url=server.url, backend={"kind": "openai-chat"})
    recipe = await asyncio.wait_for(prepare_inputs(asked, tmp_path, deadline_s=1.0), DEADLINE_S)
    assert any("within 1 s" in note.text for note in recipe.notes)


async def test_an_empty_input_is_an_error_before_anything_starts(tmp_path):
    """Trap 32: empty inputs hung."""
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    run = Run(
        spec({"kind": "synchronous"}, inputs={"kind": "file", "path": str(empty)}),
        tmp_path / "run",
    )
    with pytest.raises(ConfigError):
        await execute(run)
    assert workers_of(os.getpid()) == []


async def test_inputs_that_end_end_the_stage(tmp_path):
    """L7, trap 32: requests exhausted, found by a worker or known before, on both loops."""
    inputs = rows(tmp_path / "rows.jsonl", 7)
    for name, profile in (
        ("closed", {"kind": "concurrent", "streams": [3]}),
        ("open", {"kind": "constant", "rate": [100]}),
    ):
        run = Run(
            spec(profile, inputs=inputs, workers=2),
            tmp_path / name,
        )
        result = await execute(run)
        records, _ = contents(tmp_path / name)
        assert sorted(record.index for record in records) == list(range(7))
        assert result.stages[0].reason == "requests_exhausted"


FULL_DISK = """
import asyncio, resource, sys
from pathlib import Path
from headway.load import RunSpec, run
# No file of this process may pass 100 kB: the kernel refuses the write as a full disk does.
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
spec = RunSpec.model_validate_json(sys.argv[1])
result = asyncio.run(run(spec, Path(sys.argv[2])))
print(result.outcome, result.detail, sep="|")
"""


async def test_a_full_disk_ends_the_run_with_a_clear_word(tmp_path):
    """L8: what was written before stays readable, the workers are gone, the cause is named."""
    asked = spec({"kind": "concurrent", "streams": [8]}, limits={"max_seconds": 30})
    arguments = [sys.executable, "-c", FULL_DISK, asked.model_dump_json(), str(tmp_path)]
    process = await asyncio.create_subprocess_exec(*arguments, stdout=subprocess.PIPE)
    output, _ = await asyncio.wait_for(process.communicate(), DEADLINE_S)
    outcome, _, detail = output.decode().partition("|")
    assert outcome == "failed"
    assert "records.jsonl" in detail
    records, _ = contents(tmp_path)
    assert len(records) > 100


@pytest.mark.parametrize("seed", range(6))
async def test_a_stop_at_any_moment_leaves_whole_records_and_no_process(tmp_path, seed):
    """L8: Ctrl-C once writes all records; trap 47: finished stages were lost."""
    await stop_at_random(tmp_path, seed, abort=False)


@pytest.mark.parametrize("seed", range(6))
async def test_an_abort_at_any_moment_ends_at_once_with_whole_records(tmp_path, seed):
    """L8: Ctrl-C twice ends now."""
    await stop_at_random(tmp_path, seed, abort=True)


async def stop_at_random(path: Path, seed: int, abort: bool):
    moment_s = random.Random(seed).uniform(0.0, 1.5)
    run = Run(
        spec(
            {"kind": "concurrent", "streams": [8, 16, 32]},
            limits={"max_seconds": 0.5, "grace_s": 0.2},
            inputs={"kind": "synthetic", "turns": 3, "prompt_tokens": 4, "think_time_s": 0.05},
            workers=2,
        ),
        path,
    )
    running = asyncio.create_task(execute(run))
    await asyncio.sleep(moment_s)
    run.request_stop()
    if abort:
        run.abort()
    result = await running
    assert result.outcome in ("aborted", "interrupted", "completed"), (seed, moment_s)
    assert workers_of(os.getpid()) == []
    records, events = contents(path)
    turns = Counter((record.stage, record.index) for record in records)
    assert set(turns.values()) <= {3}, "every turn of an offered conversation has its record"
    ends = of_type(events, StageEnded)
    assert len(ends) == len(result.stages)
    for stage, ended in zip(result.stages, ends, strict=True):
        assert ended.offered == len([key for key in turns if key[0] == stage.stage])


SCRIPT = """
import asyncio, sys
from pathlib import Path
from headway.load import RunSpec, run
spec = RunSpec.model_validate_json(sys.argv[1])
asyncio.run(run(spec, Path(sys.argv[2])))
"""


def start_parent(asked, run_dir):
    return subprocess.Popen([sys.executable, "-c", SCRIPT, asked.model_dump_json(), str(run_dir)])


async def test_the_death_of_the_parent_ends_its_workers(tmp_path):
    """Trap 34: killing the parent left the workers running."""
    asked = spec({"kind": "constant", "rate": [200]}, limits={"max_seconds": 60}, workers=2)
    parent = start_parent(asked, tmp_path)
    try:
        records = tmp_path / "records.jsonl"
        await until(lambda: records.exists() and records.stat().st_size > 10_000, "records")
        workers = workers_of(parent.pid)
        assert len(workers) == 2
    finally:
        parent.kill()
        parent.wait()
    await until(lambda: not any(alive(worker) for worker in workers), "the workers' end")
    assert len(contents(tmp_path)[0]) > 20, "what was written is readable (survives kill -9)"


def alive(process):
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


async def test_the_death_of_the_parent_ends_even_a_worker_that_is_stuck(tmp_path, monkeypatch):
    """A worker whose event loop is blocked cannot see the closed socket; its watchdog does."""
    (tmp_path / "stuck.py").write_text("import time\nasync def call(text):\n    time.sleep(600)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    asked = spec(
        {"kind": "synchronous"},
        backend={"kind": "python", "function": "stuck:call"},
        limits={"max_seconds": 60},
    )
    run_dir = tmp_path / "run"
    parent = start_parent(asked, run_dir)
    try:
        events = run_dir / "events.jsonl"
        await until(lambda: events.exists() and events.stat().st_size > 0, "the stage's start")
        (worker,) = workers_of(parent.pid)
        await asyncio.sleep(0.3)
    finally:
        parent.kill()
        parent.wait()
    await until(lambda: not alive(worker), "the worker's end")
