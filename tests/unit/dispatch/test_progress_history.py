from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from headway.api.progress_file import MAX_POINTS, read_progress
from headway.core.clock import ManualClock
from headway.dispatch.progress_history import LIMIT_BYTES, ProgressHistory
from headway.store.jobs import Progress

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_numbers_are_kept_twice_a_second_at_most(tmp_path: Path) -> None:
    clock = ManualClock(START)
    history = ProgressHistory(tmp_path / "job" / "1.progress.jsonl", clock)
    for step in range(20):
        history.add(Progress(numbers={"loss": float(step)}))
        clock.advance(0.1)
    lines = read_progress(tmp_path / "job" / "1.progress.jsonl")
    assert [line.numbers["loss"] for line in lines] == [0, 5, 10, 15]
    assert [line.at_s - START.timestamp() for line in lines] == [0.0, 0.5, 1.0, 1.5]


def test_progress_without_numbers_leaves_no_file(tmp_path: Path) -> None:
    ProgressHistory(tmp_path / "1", ManualClock(START)).add(Progress(message="well"))
    assert list(tmp_path.iterdir()) == []


def test_the_file_has_an_end_whatever_the_job_tells(tmp_path: Path) -> None:
    clock = ManualClock(START)
    history = ProgressHistory(tmp_path / "1", clock)
    numbers = {f"{name:0200}": 1.0 for name in range(500)}
    for _ in range(100):
        history.add(Progress(numbers=numbers))
        clock.advance(1)
    assert 0 < (tmp_path / "1").stat().st_size <= LIMIT_BYTES


def test_a_full_disk_costs_the_chart_and_not_the_job(tmp_path: Path) -> None:
    (tmp_path / "job").write_text("a file where the directory should be")
    history = ProgressHistory(tmp_path / "job" / "1", ManualClock(START))
    history.add(Progress(numbers={"loss": 1.0}))


def test_long_histories_are_thinned_evenly_and_broken_lines_are_skipped(tmp_path: Path) -> None:
    lines = [f'{{"at_s": {n}, "numbers": {{}}}}' for n in range(3 * MAX_POINTS)]
    (tmp_path / "1").write_text("\n".join([*lines, '{"at_s": 1, "num']))
    read = read_progress(tmp_path / "1")
    assert len(read) == MAX_POINTS
    assert [line.at_s for line in read[-2:]] == [3 * MAX_POINTS - 4, 3 * MAX_POINTS - 1]
    assert read_progress(tmp_path / "none") == []
