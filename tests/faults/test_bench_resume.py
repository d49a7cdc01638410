"""A run killed in the middle goes on at the next stage; the broken one stays partial (N6)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from headway import report
from headway.compare.comparison import compare_runs
from headway.compare.model import Refusal
from headway.core.clock import monotonic_ns, ns_from_s
from headway.gate.gate import GateRules, gate
from headway.records.record import Note, RunEvent, StageEnded, StageStarted
from headway.records.run_dir import RunDirectory

WAIT_S = 60.0
FLAGS = ("--input", "24", "--output", "4", "--no-calibrate", "--quiet")


def headway_bench(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "headway.cli.main", "bench", *arguments, *FLAGS],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def killed_in_stage(stage: int, run_dir: Path, *arguments: str) -> None:
    """Begin a run and kill -9 it when requests of that stage have their records."""
    running = headway_bench(*arguments, "--run-dir", str(run_dir))
    deadline_ns = monotonic_ns() + ns_from_s(WAIT_S)
    while not any(record.stage == stage for record in RunDirectory(run_dir).records()):
        assert running.poll() is None, running.communicate()
        assert monotonic_ns() < deadline_ns, f"stage {stage} did not begin"
        time.sleep(0.05)
    running.send_signal(signal.SIGKILL)
    running.communicate(timeout=WAIT_S)


def resumed(run_dir: Path, *arguments: str) -> int:
    running = headway_bench("--resume", str(run_dir), *arguments)
    _, said = running.communicate(timeout=WAIT_S)
    assert running.returncode in (0, 5), said
    return running.returncode


def started(events: list[RunEvent]) -> list[StageStarted]:
    return [event for event in events if isinstance(event, StageStarted)]


def records_by_stage(run_dir: Path) -> dict[int, list[str]]:
    stages: dict[int, list[str]] = {}
    for line in (run_dir / "records.jsonl").read_text().splitlines():
        stages.setdefault(json.loads(line)["stage"], []).append(line)
    return stages


def test_whole_stages_are_kept_and_the_broken_one_is_neither_spliced_nor_run_again(
    sim: Any, tmp_path: Path
) -> None:
    """Trap 47: Ctrl-C, or worse, lost what had been measured."""
    target = sim(ttft=0.005, itl=0.001)
    profile = ("--profile", "constant", "--rate", "20,30,40", "--max-seconds", "2s")
    killed_in_stage(1, tmp_path / "run", target.url, *profile)
    before = records_by_stage(tmp_path / "run")
    resumed(tmp_path / "run")
    after = records_by_stage(tmp_path / "run")
    events = list(RunDirectory(tmp_path / "run").events())
    assert [(event.stage, event.name) for event in started(events)] == [
        (0, "constant 20/s"), (1, "constant 30/s"), (2, "constant 40/s"),
    ]  # fmt: skip
    assert after[0] == before[0]
    assert after[1] == before[1], "no request is added to a stage that was cut short"
    assert len(after[2]) == 80
    made = report.build(RunDirectory(tmp_path / "run"))
    assert [stage.partial for stage in made.stages] == [False, True, False]
    assert not made.complete
    [note] = [event for event in events if isinstance(event, Note) and event.topic == "resumed"]
    assert note.data == {"partial_stages": [1], "next_stage": 2}


def test_the_schedule_and_the_prompts_are_those_of_a_run_that_was_never_killed(
    sim: Any, tmp_path: Path
) -> None:
    target = sim(ttft=0.005, itl=0.001)
    profile = ("--rate", "20,30,40", "--max-seconds", "1.5s", "--seed", "5")
    killed_in_stage(1, tmp_path / "killed", target.url, *profile)
    resumed(tmp_path / "killed")
    whole = headway_bench(target.url, *profile, "--run-dir", str(tmp_path / "whole"))
    whole.communicate(timeout=WAIT_S)

    def schedule(run_dir: Path) -> dict[tuple[int, int], int | None]:
        records = RunDirectory(run_dir).records(2)
        return {(record.index, record.due_ns): record.input_tokens for record in records}

    killed, uncut = schedule(tmp_path / "killed"), schedule(tmp_path / "whole")
    assert killed.keys() == uncut.keys()
    # On a busy machine a request may be cut off before the target has told its tokens.
    told = [key for key in killed if killed[key] is not None and uncut[key] is not None]
    assert told
    assert {key: killed[key] for key in told} == {key: uncut[key] for key in told}


def test_a_sweep_goes_on_with_the_rates_that_it_had_planned(sim: Any, tmp_path: Path) -> None:
    target = sim(ttft=0.02, itl=0.001)
    sweep = ("--sweep-steps", "3", "--saturation-streams", "4", "--max-seconds", "1s")
    killed_in_stage(2, tmp_path / "run", target.url, *sweep)
    resumed(tmp_path / "run")
    events = list(RunDirectory(tmp_path / "run").events())
    low, high = sorted(
        event.counts.achieved_per_s
        for event in events
        if isinstance(event, StageEnded) and event.stage < 2
    )
    rates = [event.profile["rate"] for event in started(events)[2:]]
    planned = [low + (high - low) * step / 4 for step in (1, 2, 3)]
    assert rates == [float(f"{rate:.3g}") for rate in planned]


def test_the_end_of_a_sweep_that_the_rest_is_planned_from_is_measured_again(
    sim: Any, tmp_path: Path
) -> None:
    target = sim(ttft=0.02, itl=0.001)
    sweep = ("--sweep-steps", "1", "--saturation-streams", "4", "--max-seconds", "1s")
    killed_in_stage(1, tmp_path / "run", target.url, *sweep)
    resumed(tmp_path / "run")
    stages = started(list(RunDirectory(tmp_path / "run").events()))
    assert [(event.stage, event.step, event.name) for event in stages[:3]] == [
        (0, None, "synchronous"), (1, None, "saturation"), (2, 1, "saturation"),
    ]  # fmt: skip
    assert (stages[3].stage, stages[3].step) == (3, 2)
    made = report.build(RunDirectory(tmp_path / "run"))
    assert [stage.partial for stage in made.stages] == [False, True, False, False]
    assert [stage.done_again_as for stage in made.stages] == [None, 2, None, None]
    assert made.complete, "all that was asked for was measured in full"


def test_a_run_whose_only_stage_was_broken_off_and_done_again_is_judged_by_the_whole_one(
    sim: Any, tmp_path: Path
) -> None:
    """N6: a job whose server died in its one stage could never pass a gate."""
    target = sim(ttft=0.005, itl=0.001)
    one = ("--profile", "constant", "--rate", "60", "--max-seconds", "3s")
    killed_in_stage(0, tmp_path / "run", target.url, *one)
    resumed(tmp_path / "run")
    made = report.build(RunDirectory(tmp_path / "run"))
    assert [(stage.partial, stage.done_again_as) for stage in made.stages] == [
        (True, 1), (False, None),
    ]  # fmt: skip
    assert made.complete
    assert made.verdict == made.stages[1].verdict.word
    page = (tmp_path / "run" / "report.html").read_text()
    assert "all 2 stages" not in page
    assert "broken off, done again" in page
    judged = gate(tmp_path / "run", None, GateRules())
    measurements = [check for check in judged.checks if check.kind == "measurement"]
    assert len(measurements) == 1, "the broken stage is no part of it"
    assert "partial" not in measurements[0].text
    same = compare_runs(tmp_path / "run", tmp_path / "run")
    assert not isinstance(same, Refusal)
    assert len(same.stages) == 1


def test_another_run_is_not_glued_to_what_a_directory_holds(sim: Any, tmp_path: Path) -> None:
    target = sim(ttft=0.005, itl=0.001)
    killed_in_stage(0, tmp_path / "run", target.url, "--rate", "20", "--max-seconds", "2s")
    other = headway_bench("--resume", str(tmp_path / "run"), "--rate", "30")
    _, said = other.communicate(timeout=WAIT_S)
    assert other.returncode == 2
    assert "holds another run: not the profile that is asked for; leave that out" in said


@pytest.mark.parametrize("content", [None, "run.json"])
def test_a_directory_without_a_run_cannot_be_resumed(tmp_path: Path, content: str | None) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    if content is not None:
        (run_dir / content).write_text("{}")
    refused = headway_bench("--resume", str(run_dir))
    _, said = refused.communicate(timeout=WAIT_S)
    assert refused.returncode == 2, said
    assert str(run_dir) in said
