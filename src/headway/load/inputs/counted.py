"""Decides how prompt lengths are counted in a run, and says so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from headway.core.errors import TargetError
from headway.load.inputs.calibration import Calibration, Calibrator
from headway.load.inputs.counting import LocalTokenizer, TokenCounter, require_tokenizer_file
from headway.load.inputs.vocabulary import Vocabulary, common_words, uncounted_vocabulary
from headway.records.record import Note

NOTE_TOPIC = "prompt_tokens"
_DEADLINE_S = 30.0
"""A calibration takes 0.05 to 1 s; a target this slow is asked no further, words will do."""

_SAID_BY = {
    "tokenize": "by the target's own tokenize endpoint",
    "usage": "by the usage that the target reported for probe requests",
    "tokenizer": "by a local tokenizer, without the target's chat template",
}


class CountedVocabulary(msgspec.Struct, frozen=True):
    """The words to make prompts of, and what to tell the reader about their cost."""

    vocabulary: Vocabulary
    note: Note

    @property
    def unit(self) -> Literal["tokens", "words"]:
        """What one of the lengths asked for is."""
        return "words" if self.vocabulary.source == "words" else "tokens"

    @property
    def provenance(self) -> dict[str, Any]:
        """The note's numbers, for the run's provenance."""
        return dict(self.note.data or {})


async def count_vocabulary(
    counter: TokenCounter | None, tokenizer: Path | None, lengths: Sequence[int], seed: int
) -> CountedVocabulary:
    """Find words of known cost: by the target, else by a local tokenizer, else uncounted.

    Args:
        counter: Asks the target; None: it cannot tell.
        tokenizer: A `tokenizer.json`, where the user gave one.
        lengths: Prompt lengths in tokens, as the run will ask for them, for the check.
        seed: The run's seed.

    Raises:
        ConfigError: the tokenizer cannot be used.
    """
    if tokenizer is not None:
        require_tokenizer_file(tokenizer)
    reason = "the target has no way to count them"
    if counter is not None:
        try:
            return _counted(await _calibrate(counter, lengths, seed))
        except TargetError as error:
            reason = str(error)
    if tokenizer is not None:
        return _counted(await _calibrate(LocalTokenizer(tokenizer), lengths, seed))
    return _uncounted(reason)


async def _calibrate(counter: TokenCounter, lengths: Sequence[int], seed: int) -> Calibration:
    try:
        async with asyncio.timeout(_DEADLINE_S):
            return await Calibrator(counter, common_words()).calibrate(lengths, seed)
    except TimeoutError as error:
        raise TargetError(f"counting tokens took longer than {_DEADLINE_S:g} s") from error


def _counted(calibration: Calibration) -> CountedVocabulary:
    vocabulary = calibration.vocabulary
    data = {
        "source": vocabulary.source,
        "counts_asked": calibration.counts,
        "overhead_tokens": vocabulary.overhead_tokens,
        "tokens_per_word": vocabulary.tokens_per_word,
        "words": len(vocabulary.words),
        "checked_prompts": len(calibration.checks),
        "checked_up_to_tokens": max(check.asked_tokens for check in calibration.checks),
        "mean_deviation_tokens": calibration.mean_deviation_tokens,
        "max_deviation_tokens": calibration.max_deviation_tokens,
    }
    text = f"Prompt lengths were counted {_SAID_BY[vocabulary.source]}. {_verdict(calibration)}"
    return CountedVocabulary(vocabulary, Note(topic=NOTE_TOPIC, text=text, data=data))


def _verdict(calibration: Calibration) -> str:
    overhead = calibration.vocabulary.overhead_tokens
    sentences = [_accuracy(calibration)]
    if overhead:
        sentences.append(f"The {overhead} tokens that a request has beside its text are included.")
    if any(check.asked_tokens <= overhead for check in calibration.checks):
        sentences.append(f"Prompts shorter than {overhead + 1} tokens are not possible.")
    return " ".join(sentences)


def _accuracy(calibration: Calibration) -> str:
    checks = len(calibration.checks)
    if calibration.max_deviation_tokens == 0:
        return f"All {checks} prompts checked had exactly the length asked for."
    return (
        f"The {checks} prompts checked differed from the length asked for by "
        f"{calibration.mean_deviation_tokens:.1f} tokens on average, "
        f"{calibration.max_deviation_tokens} at most."
    )


def _uncounted(reason: str) -> CountedVocabulary:
    text = (
        f"Nothing could count tokens ({reason.rstrip('.')}): prompt lengths are in words, and "
        "how many tokens they have is not known here."
    )
    data = {"source": "words", "reason": reason}
    return CountedVocabulary(uncounted_vocabulary(), Note(topic=NOTE_TOPIC, text=text, data=data))
