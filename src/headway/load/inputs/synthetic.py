"""Synthetic conversations: generated text with a known number of tokens."""

from __future__ import annotations

import random

import msgspec

from headway.backends.backend import Call
from headway.core.distributions import Constant, draw_int
from headway.load.inputs.conversation import Conversation, Turn
from headway.load.inputs.keys import KeySeries, derive_key
from headway.load.inputs.recipe import Recipe
from headway.load.inputs.row_file import RowReader
from headway.load.inputs.text import Openings, TextPool
from headway.load.spec import SyntheticInputSpec

_LOW_64 = (1 << 64) - 1


class SyntheticInputs:
    """Makes conversations; they do not end."""

    def __init__(self, recipe: Recipe, spec: SyntheticInputSpec, seed: int, stage: int) -> None:
        self._spec = spec
        self._seed = seed
        self._stage = stage
        self._vocabulary = recipe.vocabulary
        self._pool = TextPool(recipe.vocabulary, seed)
        self._openings = Openings(recipe.vocabulary, derive_key(seed, stage, "openings"))
        self._groups = Openings(recipe.vocabulary, derive_key(seed, stage, "groups"))
        self._lengths = RowReader(recipe.rows) if recipe.rows else None
        self._keys = KeySeries(seed, stage, "conversation")
        self._random = random.Random()
        self._draws = not _all_constant(spec)
        # Without draws each request has the same lengths, and drawing them cost a tenth of a
        # request without a stream.
        self._turns = None if self._draws else self._draw_turns()
        self._same_lengths = None if self._draws or recipe.rows else self._draw_lengths(0)
        self._same_words = 0
        if self._same_lengths is not None:
            self._same_words = self._vocabulary.words_for_request(self._same_lengths[0])

    def conversation(self, index: int) -> Conversation:
        key = self._keys[index]
        if self._draws:  # seeding takes longer than all the rest; constants need none
            self._random.seed(key)
        count = self._turns or self._draw_turns()
        first = self._first_turn(index, key)
        if count == 1:
            return Conversation((first,))
        later = (self._later_turn(index, number) for number in range(1, count))
        return Conversation((first, *later))

    def close(self) -> None:
        if self._lengths is not None:
            self._lengths.close()

    def _first_turn(self, index: int, key: int) -> Turn:
        input_tokens, output_tokens = self._same_lengths or self._draw_lengths(key)
        words = self._same_words or self._vocabulary.words_for_request(input_tokens)
        opening = self._openings.words(index, words) if self._spec.unique_prefix else None
        prompt = self._pool.text(words, key, opening)
        if self._spec.prefix_tokens:
            prompt = f"{self._shared_prefix(key)} {prompt}"
        return Turn(Call(prompt=prompt, output_tokens=output_tokens))

    def _later_turn(self, index: int, number: int) -> Turn:
        key = derive_key(self._seed, self._stage, f"turn {number}", index)
        think_time_s = max(0.0, self._spec.think_time_s.draw(self._random))
        input_tokens, output_tokens = self._same_lengths or self._draw_lengths(key)
        prompt = self._pool.text(self._vocabulary.words_for_text(input_tokens), key)
        return Turn(Call(prompt=prompt, output_tokens=output_tokens), think_time_s)

    def _draw_turns(self) -> int:
        return draw_int(self._spec.turns, self._random, 1)

    def _draw_lengths(self, key: int) -> tuple[int, int | None]:
        output_tokens: int | None = None
        if self._lengths is not None:
            row = self._lengths[(key & _LOW_64) % self._lengths.count]
            input_tokens, output_tokens = msgspec.json.decode(row, type=tuple[int, int | None])
        else:
            input_tokens = draw_int(self._spec.prompt_tokens, self._random, 1)
        if output_tokens is None and self._spec.output_tokens is not None:
            output_tokens = draw_int(self._spec.output_tokens, self._random, 1)
        return input_tokens, output_tokens

    def _shared_prefix(self, key: int) -> str:
        group = (key & _LOW_64) % self._spec.prefix_groups
        words = self._vocabulary.words_for_text(self._spec.prefix_tokens)
        opening = self._groups.words(group, words)
        return self._pool.text(words, derive_key(self._seed, self._stage, "group", group), opening)


def _all_constant(spec: SyntheticInputSpec) -> bool:
    drawn = (spec.prompt_tokens, spec.output_tokens, spec.turns, spec.think_time_s)
    return all(one is None or isinstance(one, Constant) for one in drawn)
