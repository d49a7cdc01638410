"""A file of lengths: the empirical distribution that synthetic prompts are drawn from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from headway.load.inputs.fields import OUTPUT_TOKENS_NAMES, FieldNames, whole_number
from headway.load.inputs.importing import Imported, Source, import_rows
from headway.load.inputs.problems import RowError
from headway.load.inputs.row_file import RowFile, RowReader

_INPUT_NAMES = (
    "prompt_tokens",
    "input_tokens",
    "input_length",
    "input_len",
    "prompt_length",
    "prompt_len",
    "contexttokens",
    "prompt",  # a text file's line
)
_OUTPUT_NAMES = (*OUTPUT_TOKENS_NAMES, "generatedtokens")


class LengthPair(msgspec.Struct, frozen=True, array_like=True):
    """The lengths of one measured request."""

    input_tokens: int
    output_tokens: int | None = None


def import_lengths(source: Source, check_stop: Callable[[], None]) -> Imported:
    """Read measured lengths: both of a row stay together, as long prompts have other answers.

    Raises:
        InputError: no row has a length.
    """
    return import_rows(source, _pair, check_stop)


def first_input_lengths(rows: RowFile, count: int) -> list[int]:
    """The first few prompt lengths, for the check of the token count."""
    reader = RowReader(rows)
    try:
        decode = msgspec.json.Decoder(LengthPair).decode
        return [decode(reader[n]).input_tokens for n in range(min(count, rows.count))]
    finally:
        reader.close()


def _pair(fields: dict[str, Any]) -> LengthPair:
    names = FieldNames(fields)
    input_tokens = whole_number(names.first(_INPUT_NAMES), "the prompt length")
    if input_tokens is None:
        raise RowError(
            f"no prompt length (columns: {', '.join(list(fields)[:12]) or 'none'}; "
            "one of them must be prompt_tokens)"
        )
    return LengthPair(input_tokens, whole_number(names.first(_OUTPUT_NAMES), "the output length"))
