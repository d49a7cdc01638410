"""The requests of a trace: text of the recorded lengths, shared where the trace shares."""

from __future__ import annotations

import random

import msgspec

from headway.backends.backend import Call
from headway.core.distributions import draw_int
from headway.load.inputs.conversation import Conversation, Turn
from headway.load.inputs.keys import derive_key
from headway.load.inputs.recipe import Recipe
from headway.load.inputs.row_file import RowReader
from headway.load.inputs.text import Openings, TextPool
from headway.load.inputs.trace import TraceRow
from headway.load.spec import TraceInputSpec


class TraceText:
    """Makes text of recorded lengths.

    Args:
        recipe: The trace's.
        spec: Its description.
        seed: The run's seed.
        stage: The stage's number.
    """

    def __init__(self, recipe: Recipe, spec: TraceInputSpec, seed: int, stage: int) -> None:
        self._seed = seed
        self._stage = stage
        self._vocabulary = recipe.vocabulary
        self._block_tokens = spec.block_tokens
        self._pool = TextPool(recipe.vocabulary, seed)
        self._openings = Openings(recipe.vocabulary, derive_key(seed, stage, "openings"))
        self._block_openings = Openings(recipe.vocabulary, derive_key(seed, stage, "blocks"))

    def first(self, tokens: int, blocks: tuple[int, ...], number: int, key: int) -> str:
        """A whole prompt: its blocks, then text of its own.

        Args:
            tokens: Its length as the target counts it, its chat template included.
            blocks: What it begins with.
            number: Of all such prompts; no two begin alike beyond their blocks.
            key: Decides about its text.
        """
        words = self._vocabulary.words_for_request(tokens)
        parts = []
        block_words = self._vocabulary.words_for_text(self._block_tokens)
        for block in blocks:
            if words <= 0:
                break
            parts.append(self._block(block, min(words, block_words)))
            words -= block_words
        if words > 0:
            parts.append(self._pool.text(words, key, self._openings.words(number, words)))
        return " ".join(parts)

    def later(self, tokens: int, key: int) -> str:
        """New text after a history."""
        return self._pool.text(self._vocabulary.words_for_text(tokens), key)

    def _block(self, block: int, words: int) -> str:
        # Cut to fewer words, a block's text is the beginning of the whole one: requests that name
        # the same blocks share their prefix up to the shorter one's end.
        key = derive_key(self._seed, self._stage, "block", block)
        return self._pool.text(words, key, self._block_openings.words(block, words))


class TraceInputs:
    """Makes the text of a trace's requests."""

    def __init__(self, recipe: Recipe, spec: TraceInputSpec, seed: int, stage: int) -> None:
        if recipe.rows is None:
            raise ValueError("a trace's recipe has rows")
        self._spec = spec
        self._seed = seed
        self._stage = stage
        self._rows = RowReader(recipe.rows)
        self._decoder = msgspec.json.Decoder(TraceRow)
        self._text = TraceText(recipe, spec, seed, stage)
        self._random = random.Random()

    def conversation(self, index: int) -> Conversation | None:
        if index >= self._rows.count:
            return None
        row = self._decoder.decode(self._rows[index])
        key = derive_key(self._seed, self._stage, "conversation", index)
        input_tokens, output_tokens = self._lengths(row, key)
        prompt = self._text.first(input_tokens, row.blocks, index, key)
        call = Call(prompt=prompt, output_tokens=output_tokens)
        return Conversation((Turn(call),))

    def close(self) -> None:
        self._rows.close()

    def _lengths(self, row: TraceRow, key: int) -> tuple[int, int | None]:
        if row.input_tokens is not None and row.output_tokens is not None:
            return row.input_tokens, row.output_tokens
        self._random.seed(key)
        drawn_input = draw_int(self._spec.prompt_tokens, self._random, 1)
        output = self._spec.output_tokens
        drawn_output = None if output is None else draw_int(output, self._random, 1)
        return row.input_tokens or drawn_input, row.output_tokens or drawn_output
