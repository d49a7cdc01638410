"""Secrets at rest: unreadable without the key, and bound to their place."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.access.sealing import CannotOpen, Sealer, new_key
from headway.access.secret_keys import FILE_VARIABLE, VARIABLE, SecretKeys
from headway.core.errors import ConfigError

VALUE = "sk-live-0123456789"


@given(st.text(min_size=1, max_size=200))
def test_what_was_sealed_opens_again_and_does_not_show(value: str) -> None:
    sealer = Sealer([new_key()])
    sealed = sealer.seal("default", "key", value)
    assert sealer.open("default", "key", sealed) == value
    if len(value.encode()) > 3:
        assert value.encode() not in sealed
    assert sealer.seal("default", "key", value) != sealed


@pytest.mark.parametrize("place", [("other", "key"), ("default", "other")])
def test_a_value_moved_to_another_row_does_not_open(place: tuple[str, str]) -> None:
    sealer = Sealer([new_key()])
    with pytest.raises(CannotOpen):
        sealer.open(*place, sealer.seal("default", "key", VALUE))


@given(st.integers(min_value=0, max_value=50), st.integers(min_value=1, max_value=255))
def test_a_value_with_a_changed_byte_does_not_open(at: int, mask: int) -> None:
    sealer = Sealer([new_key()])
    broken = bytearray(sealer.seal("default", "key", VALUE))
    broken[at % len(broken)] ^= mask
    with pytest.raises(CannotOpen):
        sealer.open("default", "key", bytes(broken))
    with pytest.raises(CannotOpen):
        sealer.open("default", "key", bytes(broken[: at % len(broken)]))


def test_older_keys_open_what_they_sealed_and_the_newest_seals() -> None:
    old, new = new_key(), new_key()
    sealed = Sealer([old]).seal("default", "key", VALUE)
    both = Sealer([new, old])
    assert both.open("default", "key", sealed) == VALUE
    assert not both.is_current(sealed)
    again = both.seal("default", "key", VALUE)
    assert both.is_current(again)
    assert Sealer([new]).open("default", "key", again) == VALUE
    with pytest.raises(CannotOpen, match="not here"):
        Sealer([new]).open("default", "key", sealed)


def test_the_key_file_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    keys = SecretKeys.of_server(tmp_path, {})
    with pytest.raises(ConfigError, match="no key file"):
        keys.sealer()
    sealed = keys.sealer(create=True).seal("default", "key", VALUE)
    assert SecretKeys.of_server(tmp_path, {}).sealer(create=True).open("default", "key", sealed)
    assert (tmp_path / "secrets.key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secrets.key"]


def test_a_key_file_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    keys = SecretKeys.of_server(tmp_path, {})
    keys.sealer(create=True)
    os.chmod(tmp_path / "secrets.key", 0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        keys.sealer()


def test_rotation_adds_a_key_and_then_forgets_the_old(tmp_path: Path) -> None:
    keys = SecretKeys.of_server(tmp_path, {FILE_VARIABLE: str(tmp_path / "elsewhere.key")})
    sealed = keys.sealer(create=True).seal("default", "key", VALUE)
    keys.add_newest()
    assert not keys.sealer().is_current(sealed)
    assert keys.sealer().open("default", "key", sealed) == VALUE
    keys.forget_old()
    with pytest.raises(CannotOpen):
        keys.sealer().open("default", "key", sealed)


def test_keys_can_be_given_by_the_environment_and_are_then_not_ours_to_change(
    tmp_path: Path,
) -> None:
    texts = [base64.b64encode(new_key()).decode() for _ in range(2)]
    keys = SecretKeys.of_server(tmp_path, {VARIABLE: ",".join(texts)})
    assert keys.sealer(create=True).open("d", "k", keys.sealer().seal("d", "k", VALUE)) == VALUE
    with pytest.raises(ConfigError, match=VARIABLE):
        keys.add_newest()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["short", base64.b64encode(b"x" * 16).decode(), "ä" * 44, ","])
def test_a_key_that_is_none_is_refused_without_showing_it(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        SecretKeys.of_server(tmp_path, {VARIABLE: text}).sealer()
    assert text == "," or text not in str(refused.value)
