"""What a run's directory is left as when the run came to nothing, or did not."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.load.run_place import RunPlace


def made(path: Path) -> RunPlace:
    place = RunPlace(path)
    place.make()
    return place


def test_a_directory_without_a_record_goes_with_the_parents_that_were_made_for_it(
    tmp_path: Path,
) -> None:
    place = made(tmp_path / "a" / "b" / "run")
    for name in ("run.json", "inputs.jsonl", "inputs.index"):
        (tmp_path / "a" / "b" / "run" / name).write_text("x")
    for name in ("events.jsonl", "records.jsonl"):  # Opened, and the disk was full.
        (tmp_path / "a" / "b" / "run" / name).touch()
    place.take_away_unused()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["records.jsonl", "events.jsonl"])
def test_a_directory_with_a_record_or_an_event_stays_whole(tmp_path: Path, name: str) -> None:
    run = tmp_path / "run"
    place = made(run)
    files = [run / "run.json", run / "inputs.jsonl", run / name]
    for file in files:
        file.write_text("{}\n")
    place.take_away_unused()
    assert sorted(run.iterdir()) == sorted(files)


def test_a_directory_that_was_there_stays_with_all_that_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "inputs.jsonl").write_text("of the user")
    made(tmp_path).take_away_unused()
    assert [file.name for file in tmp_path.iterdir()] == ["inputs.jsonl"]


def test_a_parent_that_others_use_by_now_stays(tmp_path: Path) -> None:
    place = made(tmp_path / "runs" / "mine")
    (tmp_path / "runs" / "yours").mkdir()
    place.take_away_unused()
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["yours"]


def test_what_nobody_knows_in_a_directory_keeps_it(tmp_path: Path) -> None:
    """The workers' last words, for one."""
    place = made(tmp_path / "run")
    (tmp_path / "run" / "workers.log").write_text("Traceback")
    place.take_away_unused()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["workers.log"]
