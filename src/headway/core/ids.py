"""Job ids: 26 characters that sort by time of creation, and can be given by a unique prefix."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

ID_LENGTH = 26
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: no i, l, o, u, so that an id read aloud is not mistaken. Lower case, because
ids name directories and appear in commands."""
_RANDOM_BITS = 80
_CONFUSED = str.maketrans("ilo", "110")


class JobIds:
    """Draws new ids: 48 bits of milliseconds, then 80 random bits.

    Ids drawn by one object strictly ascend, also within a millisecond and when the clock steps
    back: the random part then counts on from the last.
    """

    def __init__(self) -> None:
        self._last = 0

    def new(self, now: datetime) -> str:
        """An id for a job created at `now` (UTC)."""
        milliseconds = int(now.timestamp() * 1000)
        drawn = (milliseconds << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS)
        if drawn >> _RANDOM_BITS <= self._last >> _RANDOM_BITS:
            drawn = self._last + 1
        self._last = drawn
        return _base32(drawn)


def created_at(job_id: str) -> datetime:
    """The creation time that a whole id carries, to the millisecond.

    Raises:
        ValueError: `job_id` is not a whole id.
    """
    if len(job_id) != ID_LENGTH or not set(job_id) <= set(_ALPHABET):
        raise ValueError(f"{job_id!r} is not a job id")
    number = 0
    for character in job_id:
        number = number * 32 + _ALPHABET.index(character)
    return datetime.fromtimestamp((number >> _RANDOM_BITS) / 1000, UTC)


def normalize_reference(text: str) -> str | None:
    """An id or prefix as a person typed it, in canonical form; None when it cannot be one."""
    reference = text.strip().lower().translate(_CONFUSED)
    if 0 < len(reference) <= ID_LENGTH and set(reference) <= set(_ALPHABET):
        return reference
    return None


def _base32(number: int) -> str:
    characters = []
    for _ in range(ID_LENGTH):
        number, digit = divmod(number, 32)
        characters.append(_ALPHABET[digit])
    return "".join(reversed(characters))
