"""Numbers that depend on (seed, stage, purpose, index) and on nothing else.

A generator that is drawn from in the order of arrivals would give other content with another
number of workers; everything random in the inputs is derived from one of these keys instead.
"""

from __future__ import annotations

import math
from hashlib import blake2b

_MASK_64 = (1 << 64) - 1
_ROUND_PAIRS = 3


def derive_key(seed: int, stage: int, purpose: str, index: int = 0) -> int:
    """A number of 128 bits, as good as random, the same on every machine."""
    return KeySeries(seed, stage, purpose)[index]


class KeySeries:
    """The keys of one purpose by index: what they have in common is hashed once."""

    def __init__(self, seed: int, stage: int, purpose: str) -> None:
        self._common = blake2b(f"{seed}/{stage}/{purpose}/".encode(), digest_size=16)

    def __getitem__(self, index: int) -> int:
        hashed = self._common.copy()
        hashed.update(b"%d" % index)
        return int.from_bytes(hashed.digest(), "big")


class Permutation:
    """A shuffle of 0..size-1 that needs no list: position in, shuffled position out.

    A list of ten million rows takes seconds to shuffle and hundreds of MiB in each worker; this
    takes microseconds and nothing. A position is split into two digits whose product of bases
    hardly exceeds `size`; each round shifts one digit by a function of the other, which can be
    undone, so no two positions meet. (Black and Rogaway, "Ciphers with Arbitrary Finite Domains",
    2002, method 3, with cycle walking for the few values beyond `size`.)
    """

    def __init__(self, size: int, key: int) -> None:
        if size < 1:
            raise ValueError("a permutation needs at least one position")
        self._size = size
        self._high_base = math.isqrt(size - 1) + 1
        self._low_base = -(-size // self._high_base)
        self._keys = [derive_key(key, 0, "round", n) & _MASK_64 for n in range(2 * _ROUND_PAIRS)]

    def __getitem__(self, position: int) -> int:
        if not 0 <= position < self._size:
            raise IndexError(position)
        value = self._scramble(position)
        while value >= self._size:
            value = self._scramble(value)
        return value

    def _scramble(self, value: int) -> int:
        high, low = divmod(value, self._low_base)
        for first, second in zip(self._keys[::2], self._keys[1::2], strict=True):
            high = (high + _mix(low ^ first)) % self._high_base
            low = (low + _mix(high ^ second)) % self._low_base
        return high * self._low_base + low


def _mix(value: int) -> int:
    # The output function of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): every input bit
    # reaches every output bit.
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _MASK_64
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _MASK_64
    return value ^ value >> 31
