"""L10, trap 51: who counts, in which order, and what the report says of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from headway.backends.backend import Call
from headway.core.errors import ConfigError, TargetError
from headway.load.inputs import counted
from headway.load.inputs.counted import count_vocabulary


class Refusing:
    source = "tokenize"

    async def count(self, call: Call) -> int:
        raise TargetError("the target answered 404 to /tokenize.")


async def test_the_target_comes_first(text_counter: Any, tokenizer_file: Path) -> None:
    counter = text_counter(lambda text: len(text.split()), overhead=3)
    found = await count_vocabulary(counter, tokenizer_file, [256], seed=1)
    assert found.vocabulary.source == "tokenize"
    assert found.unit == "tokens"
    assert "tokenize endpoint" in found.note.text
    assert "exactly" in found.note.text
    assert found.provenance["overhead_tokens"] == 3
    assert found.provenance["max_deviation_tokens"] == 0


async def test_usage_is_named_as_such(text_counter: Any) -> None:
    counter = text_counter(lambda text: len(text.split()), source="usage")
    found = await count_vocabulary(counter, None, [256], seed=1)
    assert "usage" in found.note.text
    assert found.provenance["counts_asked"] == counter.calls


async def test_a_deviation_is_told_and_nothing_is_called_exact(text_counter: Any) -> None:
    counter = text_counter(lambda text: len(text.encode()))
    found = await count_vocabulary(counter, None, [500, 900], seed=1)
    assert "exactly" not in found.note.text
    assert f"{found.provenance['max_deviation_tokens']} at most" in found.note.text


async def test_lengths_shorter_than_the_template_are_told(text_counter: Any) -> None:
    counter = text_counter(lambda text: len(text.split()), overhead=20)
    found = await count_vocabulary(counter, None, [10], seed=1)
    assert "shorter than 21 tokens" in found.note.text


async def test_a_local_tokenizer_is_used_when_the_target_cannot_count(
    tokenizer_file: Path,
) -> None:
    for counter in (None, Refusing()):
        found = await count_vocabulary(counter, tokenizer_file, [256, 512], seed=1)
        assert found.vocabulary.source == "tokenizer"
        assert "without the target's chat template" in found.note.text
        assert found.provenance["max_deviation_tokens"] == 0


async def test_words_are_the_last_resort_and_the_note_says_why() -> None:
    found = await count_vocabulary(Refusing(), None, [256], seed=1)
    assert found.unit == "words"
    assert "404" in found.note.text
    assert "words" in found.note.text


async def test_without_the_extra_the_error_says_what_to_install(
    tokenizer_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ConfigError, match=r"headway\[tokenizers\]"):
        await count_vocabulary(None, tokenizer_file, [256], seed=1)


async def test_a_missing_tokenizer_file_is_refused_even_if_the_target_counts(
    text_counter: Any, tmp_path: Path
) -> None:
    """Trap 51: a path, not a name on a hub; nothing is fetched."""
    with pytest.raises(ConfigError, match=r"no tokenizer file .*nowhere\.json"):
        await count_vocabulary(text_counter(len), tmp_path / "nowhere.json", [256], seed=1)


async def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    with pytest.raises(ConfigError, match=r"is not a tokenizer\.json"):
        await count_vocabulary(None, path, [256], seed=1)


async def test_a_target_too_slow_to_count_is_asked_no_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Silent:
        source = "usage"

        async def count(self, call: Call) -> int:
            import asyncio

            await asyncio.Event().wait()
            raise AssertionError

    monkeypatch.setattr(counted, "_DEADLINE_S", 0.05)
    found = await count_vocabulary(Silent(), None, [256], seed=1)
    assert found.unit == "words"
    assert "longer than 0.05 s" in found.note.text
