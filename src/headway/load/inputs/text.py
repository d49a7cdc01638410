"""Makes synthetic text of a given number of words, quickly, from keys."""

from __future__ import annotations

import math
import random
from array import array
from itertools import accumulate

from headway.load.inputs.keys import derive_key
from headway.load.inputs.vocabulary import Vocabulary

_POOL_WORDS = 1 << 14
_DISTINCT_OPENINGS = 1 << 48
"""So many that the openings of two stages or seeds of a million requests each meet with a
probability of about one in a hundred million."""


class Openings:
    """First words of texts: no two numbers share theirs, and neighbours differ in the first word.

    Prefix caches match from the first token on, so a text whose first few words are its own
    cannot hit what another text left in the cache (trap 50).
    """

    def __init__(self, vocabulary: Vocabulary, key: int) -> None:
        self._leads = vocabulary.leads
        self._words = vocabulary.words
        self._base = len(self._words)
        self._length = _opening_length(len(self._leads), len(self._words))
        self._size = len(self._leads) * len(self._words) ** (self._length - 1)
        self._step = _coprime_near(round(self._size * 0.6180339887), self._size)
        self._offset = key % self._size

    def words(self, number: int, limit: int) -> list[str]:
        """The opening of text `number`, at most `limit` (>= 1) words of it."""
        # Stepping by a number without a common factor visits every opening once before any
        # comes again; the golden ratio keeps neighbours far apart.
        rest = (number * self._step + self._offset) % self._size
        leads, words, base = self._leads, self._words, self._base
        opening = [leads[rest % len(leads)]]
        rest //= len(leads)
        for _ in range(min(self._length, limit) - 1):
            opening.append(words[rest % base])
            rest //= base
        return opening


class TextPool:
    """One long random text, from which pieces are cut.

    Drawing 256 words one by one takes longer than the whole budget of a request; a slice takes
    less than a microsecond. Two slices may overlap, which no prefix cache sees, because each
    text begins with an opening of its own.
    """

    def __init__(self, vocabulary: Vocabulary, seed: int) -> None:
        self._leads = vocabulary.leads
        rng = random.Random(derive_key(seed, 0, "pool"))
        words = rng.choices(vocabulary.words, k=_POOL_WORDS)
        self._text = " ".join(words) + " "
        self._starts = array("L", accumulate((len(word) + 1 for word in words), initial=0))

    def text(self, words: int, key: int, opening: list[str] | None = None) -> str:
        """A text of exactly `words` (>= 1) words; the same key gives the same text."""
        parts = opening or [self._leads[key % len(self._leads)]]
        missing = words - len(parts)
        if missing <= 0:
            return " ".join(parts[:words])
        start = (key >> 64) % _POOL_WORDS
        end = start + missing
        if end <= _POOL_WORDS:
            starts = self._starts
            return f"{' '.join(parts)} {self._text[starts[start] : starts[end] - 1]}"
        return " ".join([*parts, *self._slices(start, missing)])

    def _slices(self, start: int, words: int) -> list[str]:
        slices = []
        while words > 0:
            end = min(start + words, _POOL_WORDS)
            slices.append(self._text[self._starts[start] : self._starts[end] - 1])
            words -= end - start
            start = 0
        return slices


def _opening_length(leads: int, words: int) -> int:
    if words < 2:
        return 1
    return 1 + max(1, math.ceil(math.log(_DISTINCT_OPENINGS / leads, words)))


def _coprime_near(number: int, size: int) -> int:
    step = max(1, number)
    while math.gcd(step, size) != 1:
        step += 1
    return step
