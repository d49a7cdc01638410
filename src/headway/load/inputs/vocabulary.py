"""The words of synthetic prompts, and what is known of their cost in tokens."""

from __future__ import annotations

from importlib.resources import files
from typing import Literal

import msgspec

CountingSource = Literal["tokenize", "usage", "tokenizer", "words"]
"""Who counted: the target's tokenize endpoint, the `usage` of probes, a local tokenizer, nobody."""


class Vocabulary(msgspec.Struct, frozen=True, kw_only=True):
    """Words whose cost in tokens is known, so that a prompt of a given length can be put together.

    A request whose text is `n` of these words, separated by one space, has about
    `overhead_tokens + n * tokens_per_word` input tokens.
    """

    words: tuple[str, ...]
    leads: tuple[str, ...]
    """Words that cost the same at the very start of a text, where no space goes before them."""
    source: CountingSource
    overhead_tokens: int = 0
    """What each request has besides its words: the chat template, a start token."""
    tokens_per_word: float = 1.0

    def words_for_request(self, tokens: int) -> int:
        """How many words make a first request of `tokens` input tokens; at least one."""
        return self.words_for_text(tokens - self.overhead_tokens)

    def words_for_text(self, tokens: int) -> int:
        """How many words make a text of `tokens` tokens by itself; at least one."""
        return max(1, round(tokens / self.tokens_per_word))


def common_words() -> tuple[str, ...]:
    """The words that ship with Headway, most usual first."""
    text = files("headway.load.inputs").joinpath("data/words.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return tuple(" ".join(lines).split())


def uncounted_vocabulary() -> Vocabulary:
    """The vocabulary for when nothing can count tokens: one word stands for one token."""
    words = common_words()
    return Vocabulary(words=words, leads=words, source="words")
