"""Access tokens: `hw_ID_SECRET`, opaque, 256 bits of chance, shown once and stored as a hash.

The fixed form lets scanners of repositories and logs find a token that got out. A checksum at its
end lets them, and the server, tell a token from what only looks like one without asking the store.
SHA-256 is enough for the hash: there is nothing to guess in 256 random bits, so nothing that a slow
hash would make harder (decision 0025).
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import zlib
from dataclasses import dataclass

PREFIX = "hw_"
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: nothing is misread
_ID_LENGTH = 12
_SECRET_LENGTH = 52  # 260 bits
_CHECK_LENGTH = 7
_LETTER = "[0-9a-hjkmnp-tv-z]"
PATTERN = rf"{PREFIX}{_LETTER}{{{_ID_LENGTH}}}_{_LETTER}{{{_SECRET_LENGTH + _CHECK_LENGTH}}}"
"""What a token looks like, for scanners."""
_TOKEN = re.compile(PATTERN)


@dataclass(frozen=True)
class Minted:
    """A new token.

    Attributes:
        text: The token itself; to be shown once and kept nowhere.
        id: Its public part, by which it is named from then on.
        secret_hash: What the store keeps.
    """

    text: str
    id: str
    secret_hash: bytes

    def __repr__(self) -> str:
        return f"Minted({self.id})"  # never the secret, in no traceback


@dataclass(frozen=True)
class Presented:
    """A token that somebody showed: well formed, and perhaps even ours."""

    id: str
    secret_hash: bytes

    def matches(self, stored_hash: bytes) -> bool:
        """Whether it is the token whose hash is stored; takes the same time for any answer."""
        return hmac.compare_digest(self.secret_hash, stored_hash)


def mint() -> Minted:
    """A new token from the system's generator."""
    token_id = _drawn(_ID_LENGTH)
    body = f"{PREFIX}{token_id}_{_drawn(_SECRET_LENGTH)}"
    text = body + _check(body)
    return Minted(text, token_id, _hash(text))


def parse(text: str) -> Presented | None:
    """A token as somebody sent it; None when it cannot be one of ours."""
    if _TOKEN.fullmatch(text) is None:
        return None
    if _check(text[:-_CHECK_LENGTH]) != text[-_CHECK_LENGTH:]:
        return None
    return Presented(text[len(PREFIX) : len(PREFIX) + _ID_LENGTH], _hash(text))


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _drawn(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def _check(body: str) -> str:
    number = zlib.crc32(body.encode())
    return "".join(_ALPHABET[number >> 5 * place & 31] for place in range(_CHECK_LENGTH))
