"""The secrets' rows in SQLite."""

from __future__ import annotations

from headway.store.secrets import SealedSecret, SecretRow
from headway.store.sqlite.rows import Row, time_from_us
from headway.store.sqlite.store import SqliteStore
from headway.store.sqlite.transaction import Transaction


class SqliteSecrets:
    """Implements `headway.store.secrets.SecretStore` in the store's database.

    Args:
        store: Open while this is used.
    """

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def put_secret(self, secret: SealedSecret, by: str, limit: int) -> SecretRow | None:
        return await self._store.write(_put, secret, by, limit)

    async def secrets(self, workspace: str) -> list[SecretRow]:
        return await self._store.read(_list, workspace)

    async def sealed_secret(self, workspace: str, name: str) -> bytes | None:
        return await self._store.read(_sealed, workspace, name)

    async def remove_secret(self, workspace: str, name: str) -> bool:
        return await self._store.write(_remove, workspace, name)

    async def sealed_secrets(self) -> list[SealedSecret]:
        return await self._store.read(_all_sealed)

    async def reseal_secret(self, secret: SealedSecret, before: bytes) -> bool:
        return await self._store.write(_reseal, secret, before)


def _put(transaction: Transaction, secret: SealedSecret, by: str, limit: int) -> SecretRow | None:
    others = transaction.one("other_secrets", workspace=secret.workspace, name=secret.name)
    if others is not None and others[0] >= limit:
        return None
    row = transaction.one(
        "put_secret",
        workspace=secret.workspace,
        name=secret.name,
        sealed=secret.sealed,
        by=by,
        now_us=transaction.now_us,
    )
    assert row is not None
    return _secret_from(row)


def _list(transaction: Transaction, workspace: str) -> list[SecretRow]:
    return [_secret_from(row) for row in transaction.all("list_secrets", workspace=workspace)]


def _sealed(transaction: Transaction, workspace: str, name: str) -> bytes | None:
    row = transaction.one("sealed_secret", workspace=workspace, name=name)
    return None if row is None else bytes(row[0])


def _all_sealed(transaction: Transaction) -> list[SealedSecret]:
    return [
        SealedSecret(workspace=workspace, name=name, sealed=bytes(sealed))
        for workspace, name, sealed in transaction.all("sealed_secrets")
    ]


def _reseal(transaction: Transaction, secret: SealedSecret, before: bytes) -> bool:
    changed = transaction.change(
        "reseal_secret",
        workspace=secret.workspace,
        name=secret.name,
        sealed=secret.sealed,
        before=before,
    )
    return changed == 1


def _remove(transaction: Transaction, workspace: str, name: str) -> bool:
    return transaction.change("remove_secret", workspace=workspace, name=name) == 1


def _secret_from(row: Row) -> SecretRow:
    workspace, name, created_at_us, created_by, changed_at_us, changed_by = row
    return SecretRow(
        workspace=workspace,
        name=name,
        created_at=time_from_us(created_at_us),
        created_by=created_by,
        changed_at=time_from_us(changed_at_us),
        changed_by=changed_by,
    )
