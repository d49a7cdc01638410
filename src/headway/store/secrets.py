"""Secrets as the store keeps them: sealed. It has no key and never sees a value."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import msgspec


class SecretRow(msgspec.Struct, frozen=True, kw_only=True):
    """What may be known of a secret: everything but its value.

    Attributes:
        changed_at, changed_by: When the value was set last, and who did it.
    """

    workspace: str
    name: str
    created_at: datetime
    created_by: str
    changed_at: datetime
    changed_by: str


class SealedSecret(msgspec.Struct, frozen=True, kw_only=True):
    """A secret's value, encrypted for its workspace and name."""

    workspace: str
    name: str
    sealed: bytes


class SecretStore(Protocol):
    """The secrets of all workspaces. All methods may raise `StoreUnavailable`."""

    async def put_secret(self, secret: SealedSecret, by: str, limit: int) -> SecretRow | None:
        """Set a value, new or in the place of an old one.

        Returns:
            None when the workspace has `limit` others already.
        """
        ...

    async def secrets(self, workspace: str) -> list[SecretRow]:
        """The workspace's secrets by name."""
        ...

    async def sealed_secret(self, workspace: str, name: str) -> bytes | None:
        """One value as it was sealed; None: there is no such secret."""
        ...

    async def remove_secret(self, workspace: str, name: str) -> bool:
        """False when there was none."""
        ...

    async def sealed_secrets(self) -> list[SealedSecret]:
        """All values, for sealing them anew."""
        ...

    async def reseal_secret(self, secret: SealedSecret, before: bytes) -> bool:
        """Replace a sealing by another of the same value; False when it changed meanwhile."""
        ...
