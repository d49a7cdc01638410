"""Finds words whose cost in tokens is known at the target, and checks prompts made of them.

No tokenizer's vocabulary is needed, only counts. A text of one lead word and k others has the
count of the lead alone plus the costs of the others; no word costs less than one token, so when
the difference is k, each of them costs exactly one. One count thus proves a whole group, and a
group that fails is halved until its bad words are found. What came of it is then checked on
sample prompts: the report states what was seen there, not what should follow.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from headway.backends.backend import Call
from headway.core.errors import TargetError
from headway.load.inputs.counting import TokenCounter
from headway.load.inputs.keys import derive_key
from headway.load.inputs.text import Openings, TextPool
from headway.load.inputs.vocabulary import CountingSource, Vocabulary

_CONCURRENT_COUNTS = 8
_FEWEST_WORDS = 32
"""With fewer one-token words than this, prompts would be too much alike."""
_SHORT_TEXT_WORDS, _LONG_TEXT_WORDS = 64, 256


class Budget(NamedTuple):
    """How much a calibration may ask. A count by `usage` costs the target a real request."""

    words: int
    group: int
    group_counts: int
    leads: int
    samples: int
    sample_tokens: int


BUDGETS: dict[CountingSource, Budget] = {
    "tokenize": Budget(512, 64, 96, 48, 8, 4096),
    "usage": Budget(192, 48, 16, 12, 4, 1024),
    "tokenizer": Budget(10_000, 64, 100_000, 10_000, 16, 8192),
}


class Check(msgspec.Struct, frozen=True):
    """A sample prompt: how long it was to be, and what was counted."""

    asked_tokens: int
    counted_tokens: int


class Calibration(msgspec.Struct, frozen=True):
    """A vocabulary and the evidence for it."""

    vocabulary: Vocabulary
    checks: tuple[Check, ...]
    counts: int
    """How many counts were asked for."""

    @property
    def mean_deviation_tokens(self) -> float:
        """Mean absolute difference between asked and counted length."""
        return sum(self._deviations()) / len(self.checks)

    @property
    def max_deviation_tokens(self) -> int:
        """The largest absolute difference."""
        return max(self._deviations())

    def _deviations(self) -> list[int]:
        return [abs(check.counted_tokens - check.asked_tokens) for check in self.checks]


class Calibrator:
    """Asks one counter, within its budget."""

    def __init__(self, counter: TokenCounter, candidates: Sequence[str]) -> None:
        self._counter = counter
        self._budget = BUDGETS[counter.source]
        self._candidates = candidates[: self._budget.words]
        self._slots = asyncio.Semaphore(_CONCURRENT_COUNTS)
        self._counts = 0

    async def calibrate(self, lengths: Sequence[int], seed: int) -> Calibration:
        """Find the vocabulary and check it.

        Args:
            lengths: Prompt lengths in tokens to check, as the run will ask for them.
            seed: The run's seed.

        Raises:
            TargetError: the target did not count, or its counts make no sense.
        """
        words = await self._one_token_words()
        if len(words) >= _FEWEST_WORDS:
            vocabulary = await self._exact_vocabulary(words)
        else:
            vocabulary = await self._average_vocabulary()
        checks = await self._check(vocabulary, lengths, seed)
        return Calibration(vocabulary, checks, self._counts)

    async def _one_token_words(self) -> tuple[str, ...]:
        lead, *rest = self._candidates
        base = (await self._count([lead]))[0]
        size = self._budget.group
        groups = [rest[start : start + size] for start in range(0, len(rest), size)]
        good = {lead}
        budget = self._budget.group_counts
        while groups and budget > 0:
            asked, groups = groups[:budget], groups[budget:]
            budget -= len(asked)
            counts = await self._count([" ".join([lead, *group]) for group in asked])
            for group, count in zip(asked, counts, strict=True):
                if count - base == len(group):
                    good.update(group)
                else:
                    groups += _halves(group)
        return tuple(word for word in self._candidates if word in good)

    async def _exact_vocabulary(self, words: tuple[str, ...]) -> Vocabulary:
        tried = words[: self._budget.leads]
        counts = await self._count(tried)
        alone = Counter(counts).most_common(1)[0][0]
        leads = tuple(word for word, count in zip(tried, counts, strict=True) if count == alone)
        return Vocabulary(
            words=words, leads=leads, source=self._counter.source, overhead_tokens=alone - 1
        )

    async def _average_vocabulary(self) -> Vocabulary:
        short, long = (
            " ".join((list(self._candidates) * _LONG_TEXT_WORDS)[:words])
            for words in (_SHORT_TEXT_WORDS, _LONG_TEXT_WORDS)
        )
        counts = await self._count([short, long])
        per_word = (counts[1] - counts[0]) / (_LONG_TEXT_WORDS - _SHORT_TEXT_WORDS)
        if per_word <= 0:
            raise TargetError("the target's token counts do not grow with the text")
        words = tuple(self._candidates)
        return Vocabulary(
            words=words,
            leads=words,
            source=self._counter.source,
            overhead_tokens=max(0, round(counts[0] - per_word * _SHORT_TEXT_WORDS)),
            tokens_per_word=per_word,
        )

    async def _check(
        self, vocabulary: Vocabulary, lengths: Sequence[int], seed: int
    ) -> tuple[Check, ...]:
        # A purpose of their own: checked by `usage`, these prompts stay in the target's prefix
        # cache, and no prompt of the run may begin like one of them.
        openings = Openings(vocabulary, derive_key(seed, 0, "calibration"))
        pool = TextPool(vocabulary, seed)
        asked = [min(one, self._budget.sample_tokens) for one in lengths[: self._budget.samples]]
        texts = []
        for number, tokens in enumerate(asked):
            words = vocabulary.words_for_request(tokens)
            key = derive_key(seed, 0, "calibration", number)
            texts.append(pool.text(words, key, openings.words(number, words)))
        counts = await self._count(texts)
        return tuple(Check(tokens, count) for tokens, count in zip(asked, counts, strict=True))

    async def _count(self, texts: Sequence[str]) -> list[int]:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._count_one(text)) for text in texts]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from errors
        return [task.result() for task in tasks]

    async def _count_one(self, text: str) -> int:
        async with self._slots:
            self._counts += 1
            return await self._counter.count(Call(prompt=text))


def _halves(group: list[str]) -> list[list[str]]:
    if len(group) == 1:
        return []
    middle = len(group) // 2
    return [group[:middle], group[middle:]]
