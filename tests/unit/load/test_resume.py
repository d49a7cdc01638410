"""What a run that lost its process still has to do (N6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headway.core.errors import ConfigError
from headway.load.provenance import public_spec
from headway.load.resume import Past, check_same_workload, read_past
from headway.load.spec import RunSpec
from headway.records.record import StageCounts, StageEnded, StageStarted
from headway.records.run_dir import RunDirectory, RunFile

RUN = RunFile(run_id="r", created="2026-01-01T00:00:00Z", seed=0, spec={})


def begun(stage: int, step: int | None = None) -> StageStarted:
    return StageStarted(
        stage=stage, step=step, name=f"s{stage}", profile={}, started_wall="", workers=1,
        started_monotonic_ns=0,
    )  # fmt: skip


def past(whole: set[int], *broken: int) -> Past:
    """Stages and steps of a first attempt have the same numbers."""
    events = tuple(begun(stage) for stage in broken)
    return Past(run=RUN, steps=frozenset(whole), broken=events)


@pytest.mark.parametrize(
    ("whole", "broken", "steps", "needed", "agenda"),
    [
        (set(), (), 3, 0, [0, 1, 2]),  # nothing was begun
        ({0}, (1,), 4, 0, [2, 3]),  # goes on behind the broken one
        ({0, 1}, (), 3, 0, [2]),  # died between two stages
        ({0, 1, 2}, (), 3, 0, []),  # died behind the last one
        ({0, 1}, (2,), 3, 0, []),  # the last one broke; the others were measured
        (set(), (0,), 1, 0, [0]),  # nothing was measured: once more
        (set(), (0,), 2, 0, [1]),
        (set(), (0, 1), 2, 0, [0, 1]),  # broke twice, and still nothing was measured
        ({0}, (1,), 5, 2, [1, 2, 3, 4]),  # a sweep's end
        (set(), (0,), 5, 2, [0, 1, 2, 3, 4]),
        ({0, 1}, (2,), 5, 2, [3, 4]),
    ],
)
def test_the_agenda(
    whole: set[int], broken: tuple[int, ...], steps: int, needed: int, agenda: list[int]
) -> None:
    assert past(whole, *broken).agenda(steps, needed) == agenda


def test_a_step_that_was_measured_again_is_whole() -> None:
    again = Past(run=RUN, steps=frozenset({0, 1}), broken=(begun(1), begun(3, step=2)))
    assert again.agenda(5, 2) == [3, 4]


def spec(**parts: Any) -> RunSpec:
    return RunSpec.model_validate({"target": {"url": "http://gpu-1"}, **parts})


def directory(path: Path, run: RunSpec, *events: Any) -> RunDirectory:
    file = RunFile(
        run_id="r", created="", seed=run.seed, spec=public_spec(run),
        provenance={"workload_hash": "abc"},
    )  # fmt: skip
    made = RunDirectory.create(path, file)
    for event in events:
        made.append_event(event)
    made.close()
    return made


def ended(stage: int, reason: str = "max_seconds", **counts: Any) -> StageEnded:
    return StageEnded(
        stage=stage, at_ns=2_000_000_000, sending_ended_ns=1, reason=reason, offered=7,
        counts=StageCounts(**counts),
    )  # fmt: skip


def test_results_are_read_back_as_they_were(tmp_path: Path) -> None:
    run = spec()
    made = directory(
        tmp_path, run, begun(0), ended(0, completed=5, errored=2, achieved_per_s=2.5), begun(1)
    )
    found = read_past(made, run)
    assert found is not None
    [result] = found.results
    assert (result.completed, result.errored, result.achieved_per_s) == (5, 2, 2.5)
    assert (result.offered, result.elapsed_s, result.reason) == (7, 2.0, "max_seconds")
    assert [event.stage for event in found.broken] == [1]
    assert found.next_stage == 2


@pytest.mark.parametrize("reason", ["interrupted", "failed"])
def test_a_stage_that_was_made_to_end_is_broken_too(tmp_path: Path, reason: str) -> None:
    """A drained server ends its stages in order; they are no whole ones for that."""
    found = read_past(directory(tmp_path, spec(), begun(0), ended(0, reason)), spec())
    assert found is not None
    assert (found.results, len(found.broken)) == ((), 1)


def test_nothing_begun_is_no_past(tmp_path: Path) -> None:
    assert read_past(RunDirectory(tmp_path), spec()) is None


def test_secrets_that_run_json_does_not_keep_make_no_other_run(tmp_path: Path) -> None:
    secret = {"target": {"url": "http://gpu-1", "headers": {"Authorization": "Bearer x"}}}
    run = RunSpec.model_validate(secret)
    assert read_past(directory(tmp_path, run), run) is not None


def test_other_runs_and_other_inputs_are_refused(tmp_path: Path) -> None:
    made = directory(tmp_path, spec(seed=1))
    with pytest.raises(ConfigError, match="not the seed that is asked for"):
        read_past(made, spec(seed=2))
    found = read_past(made, spec(seed=1))
    assert found is not None
    check_same_workload(found, "abc")
    with pytest.raises(ConfigError, match="the inputs are not those"):
        check_same_workload(found, "other")
