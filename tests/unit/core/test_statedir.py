"""The parts of a state directory are named once."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.core.statedir import StateDir

PARTS = [name for name, value in vars(StateDir).items() if name[0] != "_" and not callable(value)]


@pytest.mark.parametrize("part", PARTS)
def test_a_part_s_path_is_joined_once(tmp_path: Path, part: str) -> None:
    """Joining paths for every use was a fifth of the worker's time for a short job."""
    state_dir = StateDir(tmp_path)
    assert getattr(state_dir, part) is getattr(state_dir, part)
