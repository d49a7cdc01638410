"""What a store of secrets, targets and overlays must do."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from headway.core.clock import ManualClock
from headway.core.statedir import StateDir
from headway.store.overlays import OverlayRow, OverlayStore
from headway.store.secrets import SealedSecret, SecretStore
from headway.store.sqlite.secrets import SqliteSecrets
from headway.store.sqlite.store import SqliteStore
from headway.store.sqlite.targets import SqliteOverlays, SqliteTargets
from headway.store.targets import TargetRow, TargetStore

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW, monotonic_ns=1)


@pytest.fixture(params=["sqlite"])
async def store(tmp_path: Path, clock: ManualClock) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(StateDir(tmp_path / "state"), clock, random.Random(1))
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def secrets(store: SqliteStore) -> SecretStore:
    return SqliteSecrets(store)


@pytest.fixture
def targets(store: SqliteStore) -> TargetStore:
    return SqliteTargets(store)


@pytest.fixture
def overlays(store: SqliteStore) -> OverlayStore:
    return SqliteOverlays(store)


def secret(workspace: str, name: str, sealed: bytes = b"\x00\xffsealed") -> SealedSecret:
    return SealedSecret(workspace=workspace, name=name, sealed=sealed)


async def test_a_secret_is_kept_for_its_workspace_only(secrets: SecretStore) -> None:
    await secrets.put_secret(secret("red", "key", b"\x00red"), "ada", 10)
    await secrets.put_secret(secret("blue", "key", b"\x00blue"), "bob", 10)
    assert await secrets.sealed_secret("red", "key") == b"\x00red"
    assert await secrets.sealed_secret("blue", "key") == b"\x00blue"
    assert await secrets.sealed_secret("green", "key") is None
    assert [row.created_by for row in await secrets.secrets("red")] == ["ada"]


async def test_setting_again_keeps_who_made_it_and_says_who_changed_it(
    secrets: SecretStore, clock: ManualClock
) -> None:
    await secrets.put_secret(secret("red", "key"), "ada", 10)
    clock.advance(3600)
    row = await secrets.put_secret(secret("red", "key", b"other"), "bob", 10)
    assert row is not None
    assert (row.created_by, row.created_at) == ("ada", NOW)
    assert (row.changed_by, row.changed_at) == ("bob", NOW + HOUR)
    assert await secrets.secrets("red") == [row]


async def test_a_full_workspace_takes_no_more_but_changes_what_it_has(secrets: SecretStore) -> None:
    for name in ("a", "b"):
        assert await secrets.put_secret(secret("red", name), "ada", 2) is not None
    assert await secrets.put_secret(secret("red", "c"), "ada", 2) is None
    assert await secrets.put_secret(secret("red", "b", b"new"), "ada", 2) is not None
    assert await secrets.put_secret(secret("blue", "c"), "ada", 2) is not None
    assert [row.name for row in await secrets.secrets("red")] == ["a", "b"]


async def test_a_removed_secret_is_gone(secrets: SecretStore) -> None:
    await secrets.put_secret(secret("red", "key"), "ada", 10)
    assert not await secrets.remove_secret("blue", "key")
    assert await secrets.remove_secret("red", "key")
    assert not await secrets.remove_secret("red", "key")
    assert await secrets.sealed_secret("red", "key") is None


async def test_a_value_set_during_a_rotation_is_not_overwritten_by_the_old(
    secrets: SecretStore,
) -> None:
    await secrets.put_secret(secret("red", "key", b"old"), "ada", 10)
    [found] = await secrets.sealed_secrets()
    await secrets.put_secret(secret("red", "key", b"set meanwhile"), "ada", 10)
    assert not await secrets.reseal_secret(secret("red", "key", b"old anew"), found.sealed)
    assert await secrets.sealed_secret("red", "key") == b"set meanwhile"
    assert await secrets.reseal_secret(secret("red", "key", b"anew"), b"set meanwhile")
    assert await secrets.sealed_secret("red", "key") == b"anew"


TARGET = TargetRow(
    name="gpu-a",
    url="http://gpu-a:8000",
    reach="private",
    workspaces=("blue", "red"),
    max_rate_per_s=12.5,
    max_streams=64,
    lock_group="node-1",
    health_path="/ready",
    secret="gpu-a-key",
    changed_at=NOW,
    changed_by="ada",
)


async def test_a_target_comes_back_as_it_was_put(targets: TargetStore, clock: ManualClock) -> None:
    bare = TargetRow(
        name="a", url="http://a", reach="public", workspaces=("red",), lock_group="a",
        changed_at=NOW, changed_by="ada",
    )  # fmt: skip
    assert await targets.put_target(TARGET) == TARGET
    await targets.put_target(bare)
    assert await targets.targets() == [bare, TARGET]
    clock.advance(3600)
    changed = msgspec.structs.replace(TARGET, max_streams=None, changed_by="bob")
    stored = await targets.put_target(changed)
    assert stored == msgspec.structs.replace(changed, changed_at=NOW + HOUR)
    assert await targets.target("gpu-a") == stored
    assert await targets.remove_target("gpu-a")
    assert not await targets.remove_target("gpu-a")
    assert await targets.target("gpu-a") is None


async def test_an_overlay_comes_back_as_it_was_put(overlays: OverlayStore) -> None:
    overlay = OverlayRow(
        workspace="red", env={"APP_A": "ä"}, config={"bench": {"wait": 1.5}}, changed_by="ada"
    )
    stored = await overlays.put_overlay(overlay)
    assert stored == msgspec.structs.replace(overlay, changed_at=NOW)
    empty = OverlayRow(workspace="blue", changed_by="bob")
    await overlays.put_overlay(empty)
    assert {row.workspace: row.env for row in await overlays.overlays()} == {
        "red": {"APP_A": "ä"},
        "blue": {},
    }
    await overlays.put_overlay(OverlayRow(workspace="red", changed_by="ada"))
    assert {row.workspace: row.env for row in await overlays.overlays()} == {"red": {}, "blue": {}}
