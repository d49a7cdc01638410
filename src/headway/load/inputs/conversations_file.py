"""Conversations from a file: normalised once by the parent, read by index in the workers."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec

from headway.backends.backend import Call, Message
from headway.core.distributions import Constant, draw_int
from headway.load.inputs.conversation import Conversation, Turn
from headway.load.inputs.counting import LocalTokenizer
from headway.load.inputs.dialogue import RowParser, RowPolicy
from headway.load.inputs.importing import Source, import_rows
from headway.load.inputs.keys import Permutation, derive_key
from headway.load.inputs.listed_turns import StoredTurn
from headway.load.inputs.problems import NOTE_TOPIC
from headway.load.inputs.recipe import Recipe, workload_hash
from headway.load.inputs.row_file import RowReader
from headway.load.inputs.text import Openings
from headway.load.inputs.vocabulary import uncounted_vocabulary
from headway.load.spec import FileInputSpec
from headway.records.record import Note

_OPENING_WORDS = 8
_PLACE_FIELDS = {"path", "format", "prompt_column", "output_tokens_column", "tokenizer"}
"""Where content is found, not what is sent: no part of the workload hash."""


class RowUse(msgspec.Struct, frozen=True):
    """What the backend can do with a row."""

    single_turn: bool
    """It has no conversations."""
    keep_fields: bool
    """It uses the row's fields (templates, callables), and a row needs no prompt."""


def prepare_file(
    spec: FileInputSpec, source: Source, use: RowUse, check_stop: Callable[[], None]
) -> Recipe:
    """Normalise the file's conversations.

    Args:
        spec: How the file is to be read.
        source: The file.
        use: What the backend can do with a row.
        check_stop: Called for every row; raises when the work is no longer wanted.

    Raises:
        InputError: the file has no usable row; the text names lines and reasons.
        ConfigError: an extra or the tokenizer is missing.
    """
    parser = RowParser(
        RowPolicy(
            prompt_column=spec.prompt_column,
            output_tokens_column=spec.output_tokens_column,
            every_turn=spec.turns,
            keep_fields=use.keep_fields,
            single_turn=use.single_turn,
            count_answer=_answer_counter(spec),
        )
    )
    imported = import_rows(source, parser.turns, check_stop)
    parameters: dict[str, Any] = spec.model_dump(mode="json", exclude=_PLACE_FIELDS)
    return Recipe(
        spec=spec.model_dump(mode="json"),
        vocabulary=uncounted_vocabulary(),
        rows=imported.rows,
        conversations=None if spec.repeat else imported.rows.count,
        workload_hash=workload_hash(parameters, imported.sha256),
        notes=(*imported.notes, *_content_notes(spec)),
        provenance={"rows": imported.rows.count, "rows_sha256": imported.sha256},
    )


class FileInputs:
    """Reads normalised conversations and applies the spec's distributions to them."""

    def __init__(self, recipe: Recipe, spec: FileInputSpec, seed: int, stage: int) -> None:
        if recipe.rows is None:
            raise ValueError("a file's recipe has rows")
        self._spec = spec
        self._seed = seed
        self._stage = stage
        self._rows = RowReader(recipe.rows)
        self._decoder = msgspec.json.Decoder(tuple[StoredTurn, ...])
        self._openings = Openings(recipe.vocabulary, derive_key(seed, stage, "openings"))
        self._random = random.Random()
        self._draws = not _is_constant(spec)
        self._order: tuple[int, Permutation] | None = None

    def conversation(self, index: int) -> Conversation | None:
        position = self._position(index)
        if position is None:
            return None
        stored = self._decoder.decode(self._rows[position])
        if self._draws:
            key = derive_key(self._seed, self._stage, "conversation", index)
            self._random.seed(key)
        turns = [self._turn(number, turn) for number, turn in enumerate(stored)]
        if self._spec.unique_prefix:
            turns = [
                self._with_opening(turn, index) if not number or one.hears_nothing else turn
                for number, (turn, one) in enumerate(zip(turns, stored, strict=True))
            ]
        return Conversation(tuple(turns))

    def close(self) -> None:
        self._rows.close()

    def _position(self, index: int) -> int | None:
        lap, position = divmod(index, self._rows.count)
        if lap and not self._spec.repeat:
            return None
        return self._permutation(lap)[position] if self._spec.shuffle else position

    def _permutation(self, lap: int) -> Permutation:
        if self._order is None or self._order[0] != lap:
            key = derive_key(self._seed, self._stage, "shuffle", lap)
            self._order = (lap, Permutation(self._rows.count, key))
        return self._order[1]

    def _turn(self, number: int, stored: StoredTurn) -> Turn:
        call, think_time_s = stored.call, stored.think_time_s
        if self._spec.output_tokens is not None:
            drawn = draw_int(self._spec.output_tokens, self._random, 1)
            call = msgspec.structs.replace(call, output_tokens=drawn)
        if think_time_s is None:
            begins = number == 0 or stored.begins  # There is nothing to think about yet.
            think_time_s = 0.0 if begins else self._spec.think_time_s.draw(self._random)
        return Turn(call, max(0.0, think_time_s), stored.links)

    def _with_opening(self, turn: Turn, index: int) -> Turn:
        opening = " ".join(self._openings.words(index, _OPENING_WORDS))
        return msgspec.structs.replace(turn, call=_opened(turn.call, opening))


def _opened(call: Call, opening: str) -> Call:
    if call.prompt is not None:
        return msgspec.structs.replace(call, prompt=f"{opening}\n{call.prompt}")
    if not call.messages:
        return call
    first, *rest = call.messages
    content: str | list[dict[str, Any]]
    if isinstance(first.content, str):
        content = f"{opening}\n{first.content}"
    else:
        content = [{"type": "text", "text": opening}, *first.content]
    message = Message(first.role, content, first.extra)
    return msgspec.structs.replace(call, messages=(message, *rest))


def _answer_counter(spec: FileInputSpec) -> Callable[[str], int] | None:
    if not spec.answer_lengths:
        return None
    if spec.tokenizer is None:
        return lambda text: len(text.split())
    tokenizer = LocalTokenizer(spec.tokenizer)
    return lambda text: tokenizer.count_text(text, special_tokens=False)


def _content_notes(spec: FileInputSpec) -> list[Note]:
    notes = []
    if spec.answer_lengths and spec.tokenizer is None:
        text = "Recorded answers were counted in words: no tokenizer was given."
        notes.append(Note(topic="output_tokens", text=text))
    if not spec.unique_prefix:
        text = (
            "Each stage sends the same rows: from the second on, the target may have their "
            "prompts in its prefix cache (unique_prefix prevents it)."
        )
        notes.append(Note(topic=NOTE_TOPIC, text=text))
    return notes


def _is_constant(spec: FileInputSpec) -> bool:
    drawn = (spec.output_tokens, spec.think_time_s)
    return all(one is None or isinstance(one, Constant) for one in drawn)
