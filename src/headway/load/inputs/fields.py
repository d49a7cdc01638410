"""Finds what a row's fields mean by their usual names."""

from __future__ import annotations

import math
from typing import Any

from headway.load.inputs.problems import RowError

PROMPT_NAMES = (
    "prompt",
    "question",
    "instruction",
    "text",
    "input",
    "query",
    "content",
    "request",
)
OUTPUT_TOKENS_NAMES = (
    "output_tokens",
    "max_tokens",
    "max_completion_tokens",
    "output_length",
    "output_len",
    "completion_tokens",
)
ANSWER_NAMES = ("answer", "response", "completion", "output", "target")
_MAX_TOKENS = 100_000_000


def field_name(name: str) -> str:
    """The form in which names are compared."""
    return name.strip().lower()


class FieldNames:
    """A row's fields, found without regard to case; empty ones count as absent."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = {field_name(name): value for name, value in fields.items()}

    def first(self, names: tuple[str, ...]) -> Any:
        """The first of the named fields that there is; None: there is none.

        Args:
            names: As `field_name` makes them.
        """
        for name in names:
            value = self._fields.get(name)
            if value is not None and value != "":
                return value
        return None


def whole_number(value: Any, name: str) -> int | None:
    """A length in tokens, given as a number or as the text of one; None stays None.

    Raises:
        RowError: it is not a whole number of at least 1.
    """
    if value is None:
        return None
    try:
        number = float(value) if isinstance(value, int | float | str) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool) or not (1 <= number <= _MAX_TOKENS and number % 1 == 0):
        raise RowError(f"{name} is not a whole number of at least 1: {str(value)[:40]!r}")
    return int(number)
