"""The job's working directory outlives attempts and is fenced between them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.jobs.job_dir import JobDir


def test_a_first_attempt_begins_empty_and_finds_its_own_again(tmp_path: Path) -> None:
    job_dir = JobDir(tmp_path / "work", 1)
    (job_dir.open() / "state").write_text("one")
    assert (job_dir.open() / "state").read_text() == "one"
    assert (job_dir.open().stat().st_mode & 0o777) == 0o700


def test_the_next_attempt_finds_what_the_one_before_left(tmp_path: Path) -> None:
    first = JobDir(tmp_path, 1).open()
    (first / "deep").mkdir()
    (first / "deep" / "state").write_text("one")
    third = JobDir(tmp_path, 3).open()
    assert (third / "deep" / "state").read_text() == "one"
    assert [path.name for path in tmp_path.iterdir()] == ["3"], "nothing is kept twice"


def test_an_attempt_that_lost_its_lease_cannot_write_into_the_next_ones(tmp_path: Path) -> None:
    """J5, trap 6: a paused attempt goes on, with open files and by path, beside its successor."""
    first = JobDir(tmp_path, 1).open()
    with (first / "records").open("ab", buffering=0) as late:
        late.write(b"early\n")
        second = JobDir(tmp_path, 2).open()
        late.write(b"late\n")
        assert (second / "records").read_bytes() == b"early\n"
    with pytest.raises(FileNotFoundError):
        (first / "records").write_bytes(b"late")
    (JobDir(tmp_path, 1).open() / "records").write_bytes(b"late")
    assert (JobDir(tmp_path, 2).open() / "records").read_bytes() == b"early\n"
    assert (JobDir(tmp_path, 3).open() / "records").read_bytes() == b"early\n"


def test_a_copy_that_was_cut_short_is_not_taken_for_a_directory(tmp_path: Path) -> None:
    (JobDir(tmp_path, 1).open() / "state").write_text("one")
    (tmp_path / ".2.partial-4711").mkdir()
    assert (JobDir(tmp_path, 3).open() / "state").read_text() == "one"


def test_links_are_kept_as_links(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (JobDir(tmp_path / "work", 1).open() / "link").symlink_to(outside)
    assert (JobDir(tmp_path / "work", 2).open() / "link").is_symlink()
