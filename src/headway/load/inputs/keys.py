"""Numbers that depend on (seed, stage, purpose, index) and on nothing else.

A generator that is drawn from in the order of arrivals would give other content with another
number of workers; everything random in the inputs is derived from one of these keys instead.
"""

from __future__ import annotations

from hashlib import blake2b

_MASK_64 = (1 << 64) - 1
_ROUNDS = 4


def derive_key(seed: int, stage: int, purpose: str, index: int = 0) -> int:
    """A number of 128 bits, as good as random, the same on every machine."""
    text = f"{seed}/{stage}/{purpose}/{index}".encode()
    return int.from_bytes(blake2b(text, digest_size=16).digest(), "big")


class Permutation:
    """A shuffle of 0..size-1 that needs no list: position in, shuffled position out.

    A list of ten million rows takes seconds to shuffle and hundreds of MiB in each worker; a
    Feistel network over the next power of four, walked until it lands inside, takes microseconds
    and nothing. (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002, method 2.)
    """

    def __init__(self, size: int, key: int) -> None:
        if size < 1:
            raise ValueError("a permutation needs at least one position")
        self._size = size
        self._half_bits = max(1, ((size - 1).bit_length() + 1) // 2)
        self._half_mask = (1 << self._half_bits) - 1
        self._round_keys = [derive_key(key, 0, "round", n) & _MASK_64 for n in range(_ROUNDS)]

    def __getitem__(self, position: int) -> int:
        if not 0 <= position < self._size:
            raise IndexError(position)
        value = self._scramble(position)
        while value >= self._size:  # fewer than four steps on average: the domain is < 4 x size
            value = self._scramble(value)
        return value

    def _scramble(self, value: int) -> int:
        left, right = value >> self._half_bits, value & self._half_mask
        for round_key in self._round_keys:
            left, right = right, left ^ (_mix(right ^ round_key) & self._half_mask)
        return left << self._half_bits | right


def _mix(value: int) -> int:
    # The output function of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): every input bit
    # reaches every output bit.
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _MASK_64
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _MASK_64
    return value ^ value >> 31
