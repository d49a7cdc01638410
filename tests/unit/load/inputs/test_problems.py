from __future__ import annotations

from pathlib import Path

import pytest

from headway.core.errors import InputError
from headway.load.inputs.problems import Problems


def test_a_file_without_lines_is_empty() -> None:
    with pytest.raises(InputError, match=r"chats\.jsonl is empty"):
        Problems(Path("chats.jsonl")).check(usable=0)


def test_all_lines_unusable_names_the_first_of_each_kind() -> None:
    problems = Problems(Path("chats.jsonl"))
    for line in range(1, 10):
        problems.add(line, "not JSON" if line % 2 else "no prompt")
    with pytest.raises(InputError) as refused:
        problems.check(usable=0)
    assert str(refused.value) == (
        "chats.jsonl has no usable line, all 9 were refused: "
        "line 1, 3, 5, 7, 9: not JSON; line 2, 4, 6, 8: no prompt"
    )


def test_a_million_bad_lines_make_a_short_note() -> None:
    problems = Problems(Path("data/chats.jsonl"))
    for line in range(1, 100_001):
        problems.add(line, f"reason {line}")
    (note,) = problems.notes(usable=5)
    assert note.text.startswith("100000 of 100005 lines of chats.jsonl were left out: line 1: ")
    assert note.text.endswith("; ...")
    assert len(note.text) < 300
    assert note.data is not None
    assert note.data["skipped"] == 100_000


def test_no_bad_line_is_not_worth_a_note() -> None:
    assert Problems(Path("a")).notes(usable=3) == ()


def test_of_a_reason_that_comes_often_the_first_places_are_named() -> None:
    problems = Problems(Path("chats.jsonl"))
    for line in range(1, 1_001):
        problems.add(line, "not JSON")
    (note,) = problems.notes(usable=1)
    assert "line 1, 2, 3, 4, 5: not JSON; ..." in note.text
