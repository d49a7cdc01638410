"""The rows of targets and overlays in SQLite."""

from __future__ import annotations

from typing import Any

import msgspec

from headway.store.overlays import OverlayRow
from headway.store.sqlite.rows import Row, time_from_us, to_json
from headway.store.sqlite.store import SqliteStore
from headway.store.sqlite.transaction import Transaction
from headway.store.targets import TargetRow

_names = msgspec.json.Decoder(tuple[str, ...])
_env = msgspec.json.Decoder(dict[str, str])
_config = msgspec.json.Decoder(dict[str, dict[str, Any]])


class SqliteTargets:
    """Implements `headway.store.targets.TargetStore` in the store's database.

    Args:
        store: Open while this is used.
    """

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def put_target(self, target: TargetRow) -> TargetRow:
        return await self._store.write(_put, target)

    async def targets(self) -> list[TargetRow]:
        return await self._store.read(_targets)

    async def target(self, name: str) -> TargetRow | None:
        return await self._store.read(_target, name)

    async def remove_target(self, name: str) -> bool:
        return await self._store.write(_remove, name)


class SqliteOverlays:
    """Implements `headway.store.overlays.OverlayStore`; `store` as above."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def put_overlay(self, overlay: OverlayRow) -> OverlayRow:
        return await self._store.write(_put_overlay, overlay)

    async def overlays(self) -> list[OverlayRow]:
        return await self._store.read(_overlays)


def _put(transaction: Transaction, target: TargetRow) -> TargetRow:
    transaction.change(
        "put_target",
        name=target.name,
        url=target.url,
        reach=target.reach,
        workspaces_json=to_json(target.workspaces),
        max_rate_per_s=target.max_rate_per_s,
        max_streams=target.max_streams,
        lock_group=target.lock_group,
        health_path=target.health_path,
        secret=target.secret,
        changed_by=target.changed_by,
        now_us=transaction.now_us,
    )
    return msgspec.structs.replace(target, changed_at=transaction.now)


def _targets(transaction: Transaction) -> list[TargetRow]:
    return [_target_from(row) for row in transaction.all("targets")]


def _target(transaction: Transaction, name: str) -> TargetRow | None:
    row = transaction.one("target", name=name)
    return None if row is None else _target_from(row)


def _remove(transaction: Transaction, name: str) -> bool:
    return transaction.change("remove_target", name=name) == 1


def _target_from(row: Row) -> TargetRow:
    (name, url, reach, workspaces_json, max_rate_per_s, max_streams, lock_group, health_path,
     secret, changed_at_us, changed_by) = row  # fmt: skip
    return TargetRow(
        name=name,
        url=url,
        reach=reach,
        workspaces=_names.decode(workspaces_json),
        max_rate_per_s=max_rate_per_s,
        max_streams=max_streams,
        lock_group=lock_group,
        health_path=health_path,
        secret=secret,
        changed_at=time_from_us(changed_at_us),
        changed_by=changed_by,
    )


def _put_overlay(transaction: Transaction, overlay: OverlayRow) -> OverlayRow:
    transaction.change(
        "put_overlay",
        workspace=overlay.workspace,
        env_json=to_json(overlay.env),
        config_json=to_json(overlay.config),
        changed_by=overlay.changed_by or "",
        now_us=transaction.now_us,
    )
    return msgspec.structs.replace(overlay, changed_at=transaction.now)


def _overlays(transaction: Transaction) -> list[OverlayRow]:
    return [
        OverlayRow(
            workspace=workspace,
            env=_env.decode(env_json),
            config=_config.decode(config_json),
            changed_at=time_from_us(changed_at_us),
            changed_by=changed_by,
        )
        for workspace, env_json, config_json, changed_at_us, changed_by in transaction.all(
            "overlays"
        )
    ]
