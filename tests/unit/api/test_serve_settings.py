"""Settings of a server: flags over file, wrong fields named (J1: overridable)."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.api.serve_settings import default_state_dir, lane_overrides, settings_from
from headway.core.errors import ConfigError
from headway.core.states import Lane

FLAGS = {"operations": ("pkg.ops",), "state_dir": Path("/state"), "port": None}


def test_flags_go_over_the_file(tmp_path: Path) -> None:
    config = tmp_path / "headway.yaml"
    config.write_text("port: 1\ndrain_s: 5\nlanes: {long: {guaranteed: 1, burst: 0}}\n")
    settings = settings_from(config, {**FLAGS, "port": 2})
    assert (settings.port, settings.drain_s) == (2, 5)
    assert settings.worker().lanes[Lane.LONG].guaranteed == 1
    assert settings.worker().state_dir == Path("/state")


def test_paths_of_operations_are_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Job processes run elsewhere than the person who typed the path."""
    monkeypatch.chdir(tmp_path)
    settings = settings_from(None, {**FLAGS, "operations": ("ops.py", "pkg.ops")})
    assert settings.operations == (str(tmp_path / "ops.py"), "pkg.ops")


def test_lanes_are_written_as_guaranteed_plus_burst() -> None:
    lanes = lane_overrides({Lane.LONG: "4+2", Lane.SHORT: "3", Lane.INLINE: None})
    assert (lanes[Lane.LONG].guaranteed, lanes[Lane.LONG].burst) == (4, 2)
    assert (lanes[Lane.SHORT].guaranteed, lanes[Lane.SHORT].burst) == (3, None)
    assert Lane.INLINE not in lanes
    with pytest.raises(ConfigError, match="write 4, or 4"):
        lane_overrides({Lane.LONG: "many"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prot: 1", "prot: Extra inputs"),
        ("port: 70000", "port: Input should be less"),
        ("- 1", "must hold names and values"),
        ("port: [", "is not YAML"),
        ("lanes: {inline: {guaranteed: 1}}", "inline"),
    ],
)
def test_a_wrong_file_is_said_in_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    config = tmp_path / "headway.yaml"
    config.write_text(text)
    with pytest.raises(ConfigError, match=words):
        settings_from(config, FLAGS).worker()


def test_a_missing_file_and_missing_operations_are_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        settings_from(tmp_path / "none.yaml", FLAGS)
    with pytest.raises(ConfigError, match="operations"):
        settings_from(None, {"state_dir": tmp_path})


def test_the_state_directory_follows_xdg() -> None:
    assert default_state_dir({"XDG_STATE_HOME": "/x"}) == Path("/x/headway")
    assert default_state_dir({"HOME": "/home/a"}) == Path("/home/a/.local/state/headway")
