"""A real tokenizer, trained here in milliseconds, and counters that play the target with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from headway.backends.backend import Call
from headway.backends.spec import BackendSpec, OpenAIBackendSpec
from headway.load.inputs import Inputs, Recipe, TokenCounter, open_inputs, prepare
from headway.load.inputs.vocabulary import common_words
from headway.load.spec import InputSpec


class TextCounter:
    """Counts a call's text by a function, as a target that adds `overhead` tokens would."""

    def __init__(
        self,
        count: Callable[[str], int],
        overhead: int = 0,
        source: Literal["tokenize", "usage", "tokenizer"] = "tokenize",
    ) -> None:
        self._count_text = count
        self._overhead = overhead
        self.source = source
        self.calls = 0

    async def count(self, call: Call) -> int:
        self.calls += 1
        return self._overhead + self._count_text(call.as_text())


@pytest.fixture(scope="session")
def tokenizer_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A byte-level BPE in which most common words are one token, and the rare ones are not."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=3000,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    usual = common_words()[:900]
    tokenizer.train_from_iterator([f"{word} {word} {word}" for word in usual], trainer)
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    tokenizer.save(str(path))
    return path


@pytest.fixture(scope="session")
def count_tokens(tokenizer_file: Path) -> Callable[[str], int]:
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    return lambda text: len(tokenizer.encode(text).ids)


@pytest.fixture
def text_counter() -> type[TextCounter]:
    return TextCounter


Opened = Callable[..., Awaitable[tuple[Recipe, Inputs]]]


@pytest.fixture
def opened(tmp_path: Path) -> Any:
    """Prepare and open inputs as a run does; closes them at the end."""
    held: list[Inputs] = []

    async def open_them(
        spec: InputSpec,
        *,
        seed: int = 7,
        stage: int = 0,
        backend: BackendSpec | None = None,
        counter: TokenCounter | None = None,
    ) -> tuple[Recipe, Inputs]:
        work_dir = tmp_path / f"run-{len(held)}"
        work_dir.mkdir()
        recipe = await prepare(spec, backend or OpenAIBackendSpec(), seed, work_dir, counter)
        held.append(open_inputs(recipe, seed, stage))
        return recipe, held[-1]

    yield open_them
    for inputs in held:
        inputs.close()


@pytest.fixture(scope="session")
def examples() -> Path:
    """The example files that ship with the repository."""
    return Path(__file__).parents[4] / "examples" / "data"
