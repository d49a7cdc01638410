from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.ids import ID_LENGTH, JobIds, created_at, normalize_reference

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@given(st.lists(st.integers(-5000, 5000), max_size=60))
def test_ids_of_one_source_ascend_even_when_the_clock_steps_back(steps_ms: list[int]) -> None:
    ids, now, drawn = JobIds(), NOW, []
    for step in steps_ms:
        now += timedelta(milliseconds=step)
        drawn.append(ids.new(now))
    assert drawn == sorted(set(drawn))


def test_an_id_tells_when_it_was_made() -> None:
    made = NOW + timedelta(milliseconds=123)
    assert created_at(JobIds().new(made)) == made


def test_sources_do_not_collide() -> None:
    assert len({JobIds().new(NOW) for _ in range(1000)}) == 1000


@pytest.mark.parametrize("text", ["", "x", "u" * ID_LENGTH, "0" * 27])
def test_what_is_no_id_has_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="is not a job id"):
        created_at(text)


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("01ABC", "01abc"),
        (" 01abc\n", "01abc"),
        ("OIL", "011"),
        ("", None),
        ("u", None),
        ("a b", None),
    ],
)
def test_references_are_read_as_people_write_them(typed: str, read: str | None) -> None:
    assert normalize_reference(typed) == read


def test_an_id_is_its_own_reference() -> None:
    drawn = JobIds().new(NOW)
    assert len(drawn) == ID_LENGTH
    assert normalize_reference(drawn) == drawn
