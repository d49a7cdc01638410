"""The secrets of workspaces: set, listed, removed, never read back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from headway.access.secret_keys import SecretKeys
from headway.api.problems import Refusal
from headway.core.errors import ConfigError
from headway.jobs.masking import MIN_SECRET
from headway.store.secrets import SealedSecret, SecretRow, SecretStore

MAX_SECRETS = 200
"""Of one workspace."""
MAX_BYTES = 32 * 1024
"""Of one value; an environment variable cannot carry much more."""


class SecretVault:
    """Seals what is put in.

    Args:
        store: Keeps it.
        keys: Seal it.
    """

    def __init__(self, store: SecretStore, keys: SecretKeys) -> None:
        self._store = store
        self._keys = keys

    async def put(self, workspace: str, name: str, value: str, by: str) -> SecretRow:
        """Set a secret, new or in the place of an old one.

        Raises:
            Refusal: 409; the workspace has too many. 422; the value cannot be one. 503; there is
                no key to seal it with.
        """
        _check_value(value)
        try:
            sealer = await asyncio.to_thread(lambda: self._keys.sealer(create=True))
        except ConfigError as error:
            raise Refusal(503, str(error)) from None
        sealed = SealedSecret(
            workspace=workspace, name=name, sealed=sealer.seal(workspace, name, value)
        )
        row = await self._store.put_secret(sealed, by, MAX_SECRETS)
        if row is None:
            raise Refusal(409, f"a workspace has {MAX_SECRETS} secrets at most; remove one first")
        return row

    async def entries(self, workspace: str) -> list[SecretRow]:
        """What may be known of a workspace's secrets."""
        return await self._store.secrets(workspace)

    async def remove(self, workspace: str, name: str) -> None:
        """Forget a secret.

        Raises:
            Refusal: 404; there is none.
        """
        if not await self._store.remove_secret(workspace, name):
            raise Refusal(404, f"there is no secret {name!r}")

    async def missing(self, workspace: str, names: Iterable[str]) -> list[str]:
        """Those of the names that are no secrets of the workspace."""
        there = {row.name for row in await self._store.secrets(workspace)}
        return [name for name in names if name not in there]

    async def rotate(self) -> int:
        """Seal everything with a new key, then forget the old ones; how many were sealed anew.

        A key from the environment is not ours to make: the newest of those is used.

        Raises:
            Refusal: 409 or 503; a key cannot be made, or one of the secrets cannot be opened.
        """
        try:
            if not self._keys.are_given:
                await asyncio.to_thread(self._keys.add_newest)
            count = await self._seal_anew()
            await asyncio.to_thread(self._keys.forget_old)
        except ConfigError as error:
            raise Refusal(503, str(error)) from None
        return count

    async def _seal_anew(self) -> int:
        """Repeat until the newest key seals all: a value may be set meanwhile with an older one."""
        sealer = await asyncio.to_thread(self._keys.sealer)
        count = 0
        while old := [
            each
            for each in await self._store.sealed_secrets()
            if not sealer.is_current(each.sealed)
        ]:
            for each in old:
                value = sealer.open(each.workspace, each.name, each.sealed)
                sealed = sealer.seal(each.workspace, each.name, value)
                anew = SealedSecret(workspace=each.workspace, name=each.name, sealed=sealed)
                count += await self._store.reseal_secret(anew, each.sealed)
        return count


def _check_value(value: str) -> None:
    if len(value.strip()) < MIN_SECRET:
        raise Refusal(
            422,
            f"a secret has {MIN_SECRET} characters at least: a shorter one could not be taken out "
            "of logs without taking ordinary words along",
        )
    if "\0" in value or len(value.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise Refusal(422, f"a secret has no NUL, and {MAX_BYTES} bytes at most")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Refusal(422, "a secret is a text that UTF-8 can carry") from None
