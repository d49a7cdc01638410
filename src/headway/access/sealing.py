"""Encryption of secrets at rest: AES-256-GCM, bound to the workspace and the name.

Whoever copies the database learns nothing, and a value moved to another workspace's or name's row
does not open: the row's place is authenticated along with it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway.core.errors import HeadwayError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
_VERSION = b"\x01"
_ID_BYTES = 4
_NONCE_BYTES = 12
_HEAD = len(_VERSION) + _ID_BYTES + _NONCE_BYTES


class CannotOpen(HeadwayError):
    """No key that this server has opens the secret: give it the key file it was sealed with."""


class Sealer:
    """Seals and opens values.

    Args:
        keys: The newest first; it seals, all of them open. 32 random bytes each.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys or any(len(key) != KEY_BYTES for key in keys):
            raise ValueError("a sealer needs keys of 32 bytes")
        self._keys = {key_id(key): key for key in reversed(keys)}
        self._newest = keys[0]

    def seal(self, workspace: str, name: str, value: str) -> bytes:
        """`value`, encrypted for its place."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = _cipher(self._newest).encrypt(nonce, value.encode(), _place(workspace, name))
        return _VERSION + key_id(self._newest) + nonce + sealed

    def open(self, workspace: str, name: str, sealed: bytes) -> str:
        """The value that was sealed for this place.

        Raises:
            CannotOpen: its key is not here, or it is broken or from another place.
        """
        from cryptography.exceptions import InvalidTag

        key = self._keys.get(sealed[len(_VERSION) : len(_VERSION) + _ID_BYTES])
        nonce, body = sealed[_HEAD - _NONCE_BYTES : _HEAD], sealed[_HEAD:]
        if key is None or not sealed.startswith(_VERSION):
            raise CannotOpen(f"the secret {name!r} was sealed with a key that is not here")
        try:
            return _cipher(key).decrypt(nonce, body, _place(workspace, name)).decode()
        except (InvalidTag, ValueError):
            raise CannotOpen(f"the secret {name!r} is broken or belongs elsewhere") from None

    def is_current(self, sealed: bytes) -> bool:
        """Whether the newest key sealed it."""
        return sealed[len(_VERSION) : len(_VERSION) + _ID_BYTES] == key_id(self._newest)

    def __repr__(self) -> str:
        return f"Sealer({len(self._keys)} keys)"


def new_key() -> bytes:
    """A random key."""
    return secrets.token_bytes(KEY_BYTES)


def key_id(key: bytes) -> bytes:
    """Tells keys apart without telling anything about them."""
    return hashlib.sha256(b"headway key id\0" + key).digest()[:_ID_BYTES]


def _cipher(key: bytes) -> AESGCM:
    # Imported late: most commands and most servers never have a secret.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


def _place(workspace: str, name: str) -> bytes:
    # NUL is in neither: no other pair gives the same bytes.
    return f"headway secret\0{workspace}\0{name}".encode()
